try {
  await z.read('z://blob/' + '0'.repeat(64));
  return "no error";
} catch (e) {
  return { caught: true, kind: e.kind, path: e.path, retryable: e.retryable };
}
