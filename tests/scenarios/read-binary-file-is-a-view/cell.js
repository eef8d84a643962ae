const view = await z.read('blob');
const bytes = await z.read(view.handle, { full: true });
return { kind: view.kind, encoding: view.encoding, bytes: view.bytes, exact: [...bytes] };
