await z.edit('a', { find: '\n', replacement: 'y' });
