return await z.state.get('k');
