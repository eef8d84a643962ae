await z.edit('key', { find: 'old', replacement: 'new' });
