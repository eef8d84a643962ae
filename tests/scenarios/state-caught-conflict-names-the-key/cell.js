try {
  await z.state.set('k', 2, { expect: 5 });
  return "no error";
} catch (e) {
  return { caught: true, kind: e.kind, path: e.path, retryable: e.retryable };
}
