await z.state.set('n', 2, { expect: 1 }); return await z.state.get('n');
