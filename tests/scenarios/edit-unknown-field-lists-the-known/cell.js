await z.edit('a', { find: 'one', replace: 'x' });
