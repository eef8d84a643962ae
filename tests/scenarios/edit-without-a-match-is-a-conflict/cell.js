await z.edit('a', { find: 'three', replacement: 'x' });
