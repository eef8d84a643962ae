await z.apply([{ path: 'a', find: 'one', replacement: '1' }]);
