await z.edit('a', { find: 'two', replacement: '2' });
return await z.read('a');
