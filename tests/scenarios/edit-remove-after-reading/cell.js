await z.read('a');
await z.edit('a', { remove: true });
