await z.apply([{ path: 'a', rename: 'b' }]);
