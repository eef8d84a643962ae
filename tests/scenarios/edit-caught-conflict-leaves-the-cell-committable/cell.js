try {
  await z.edit('a', { find: 'three', replacement: '3' });
} catch (e) {
  await z.edit('a', { find: 'two', replacement: e.kind });
}
