await z.edit('a', { patch: 'not a diff' });
