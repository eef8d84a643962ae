const { items } = await z.find('', { mode: 'symbols', path: 'lib' }).catch(() => z.find('_', { mode: 'symbols', path: 'lib' }));
const functions = items.filter((item) => item.kind === 'function');
const dead = [];
for (const { symbol, path, range } of functions) {
  const name = symbol.split('::').pop().split('.').pop();
  const uses = await z.find(name, { mode: 'references' });
  if (uses.total === 0 && uses.absence === 'certified') dead.push(`${path}:${range.start.line} ${name}`);
}
return dead;
