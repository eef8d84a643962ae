await z.state.set('k', 1, { expect: null }); return await z.state.get('k');
