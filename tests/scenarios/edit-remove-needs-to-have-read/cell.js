await z.edit('a', { remove: true });
