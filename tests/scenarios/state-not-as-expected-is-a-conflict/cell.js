await z.state.set('k', 1, { expect: 2 });
