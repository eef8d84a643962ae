await z.edit('l', { find: 'x', replacement: 'y' });
