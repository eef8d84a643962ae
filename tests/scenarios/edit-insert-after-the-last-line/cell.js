await z.read('a');
await z.edit('a', { insertAfter: 2, content: 'three\n' });
