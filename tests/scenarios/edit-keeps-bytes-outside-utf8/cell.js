await z.edit('a', { find: 'b', replacement: 'x' });
