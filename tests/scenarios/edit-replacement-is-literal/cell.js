await z.edit('a', { find: 'two', replacement: '$&$1\\n' });
