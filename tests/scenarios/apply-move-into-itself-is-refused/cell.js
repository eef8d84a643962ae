try {
  await z.apply([{ move: ['d', 'd/e/d'] }]);
  return "no error";
} catch (e) {
  return { caught: true, kind: e.kind, path: e.path, retryable: e.retryable };
}
