const { range } = await z.read('util.js', { symbol: 'slugify' });
const { content } = await z.read('util.js', { lines: range.lines });
await z.apply(
  [
    { path: 'util.js', lines: range.lines, content: "export { slugify } from './slug.js';\n" },
    { path: 'slug.js', create: content },
  ],
  { verify: { parse: true } },
);
return (await z.find('slugify', { mode: 'definitions' })).items.map((item) => item.path);
