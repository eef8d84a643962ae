await z.edit('l', { find: 'two', replacement: '2' });
