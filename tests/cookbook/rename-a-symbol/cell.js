const [from, to] = ['priceOf', 'costOf'];
const [impact, uses] = await Promise.all([
  z.find(from, { mode: 'impact' }),
  z.find(from, { mode: 'word', limit: 1000 }),
]);
if (!uses.complete) throw new Error('more uses than one page: narrow the scope');

const files = [...new Set(uses.items.map((use) => use.path))];
await z.apply(
  files.map((path) => ({ path, find: from, replacement: to, count: 'all' })),
  { verify: { parse: true } },
);
return { files, depends: impact.items.map((item) => item.symbol.split('::').pop()) };
