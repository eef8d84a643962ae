try {
  await z.read('pipe');
  return "no error";
} catch (e) {
  return { caught: true, kind: e.kind, path: e.path, retryable: e.retryable };
}
