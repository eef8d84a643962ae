await z.edit('tool', { find: 'old', replacement: 'new' });
