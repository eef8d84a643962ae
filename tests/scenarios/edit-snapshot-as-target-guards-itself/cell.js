const { snapshot } = await z.read('a', { snapshot: true });
await z.edit(snapshot, { find: 'one', replacement: '1' });
await z.edit(snapshot, { find: 'two', replacement: '2' });
