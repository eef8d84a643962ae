try {
  await z.apply({ effect: 'mail', key: 'k', payload: {} });
  return "no error";
} catch (e) {
  return { caught: true, kind: e.kind, path: e.path, retryable: e.retryable };
}
