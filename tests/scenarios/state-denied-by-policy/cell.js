await z.state.get('k');
