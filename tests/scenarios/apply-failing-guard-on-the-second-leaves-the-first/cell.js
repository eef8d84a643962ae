await z.apply([
  { path: 'a', find: 'one', replacement: '1' },
  { path: 'b', find: 'none', replacement: 'x' },
]);
