try {
  await z.state.set('k', undefined);
  return "no error";
} catch (e) {
  return { caught: true, kind: e.kind, path: e.path, retryable: e.retryable };
}
