await z.edit('a', { find: 'x', replacement: 'y', count: 'all' });
