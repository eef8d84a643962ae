try {
  await z.apply([{ path: 'a', find: 'two', replacement: '2' }], { verify: { command: ['false'] } });
} catch (e) {
  return [e.kind, await z.read('a')];
}
