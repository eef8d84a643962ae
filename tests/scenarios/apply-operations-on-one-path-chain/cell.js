await z.apply([
  { path: 'new', create: 'first' },
  { path: 'new', find: 'first', replacement: 'second' },
  { move: ['new', 'newer'] },
]);
