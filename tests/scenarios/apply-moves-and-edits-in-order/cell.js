await z.apply([{ move: ['a', 'd/b'] }, { path: 'd/b', find: 'one', replacement: '1' }]);
