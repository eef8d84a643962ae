await z.state.set('k', { a: [1, 2] }); return [await z.state.test('k', { a: [1, 2] }), await z.state.test('k', { a: [2, 1] })];
