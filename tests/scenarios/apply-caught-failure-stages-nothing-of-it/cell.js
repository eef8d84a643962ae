try {
  await z.apply([
    { path: 'a', find: 'one', replacement: '1' },
    { path: 'nowhere', find: 'x', replacement: 'y' },
  ]);
} catch (e) {
  return [e.kind, await z.read('a')];
}
