try {
  await z.apply([{ path: 'a', find: 'one', replacement: '1' }]);
  return "no error";
} catch (e) {
  return { caught: true, kind: e.kind, path: e.path, retryable: e.retryable };
}
