await z.edit('a', { find: 'a', replacement: 'x' });
