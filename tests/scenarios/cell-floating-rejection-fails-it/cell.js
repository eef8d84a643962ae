z.read('none');
await z.edit('a', { find: 'one', replacement: '1' });
