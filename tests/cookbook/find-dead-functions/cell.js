const { items } = await z.find('^def ', { mode: 'regex', path: 'lib', limit: 1000 });
const dead = [];
for (const { path, range, text } of items) {
  const [, name] = text.match(/^def (\w+)/);
  const uses = await z.find(name, { mode: 'references' });
  if (uses.total === 0 && uses.absence === 'certified') dead.push(`${path}:${range.start.line} ${name}`);
}
return dead;
