try {
  await z.edit('d', { find: 'x', replacement: 'y' });
  return "no error";
} catch (e) {
  return { caught: true, kind: e.kind, path: e.path, retryable: e.retryable };
}
