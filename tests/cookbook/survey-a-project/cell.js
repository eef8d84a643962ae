const { entries } = await z.read('.', { recursive: true, limit: 5000 });
const files = entries.filter((entry) => entry.kind === 'file');
const kinds = {};
for (const { path, bytes } of files) {
  const kind = path.includes('.') ? path.split('.').pop() : 'none';
  kinds[kind] = (kinds[kind] ?? 0) + bytes;
}
const largest = files.toSorted((a, b) => b.bytes - a.bytes)[0].path;
const { items } = await z.find('e', { mode: 'symbols', path: largest });
return { files: files.length, kinds, largest, symbols: items.map((item) => item.symbol.split('::').pop()) };
