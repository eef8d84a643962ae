for (;;) await z.state.get('k');
