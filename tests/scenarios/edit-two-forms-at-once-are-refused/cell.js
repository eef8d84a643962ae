await z.edit('a', { find: 'one', replacement: '1', content: 'x' });
