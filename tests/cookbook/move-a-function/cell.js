const part = await z.read('util.js', { symbol: 'slugify' });
const [first, last] = part.range.lines;
await z.apply(
  [
    { path: 'util.js', lines: [first, last], content: "export { slugify } from './slug.js';\n" },
    { path: 'slug.js', create: part.content.endsWith('\n') ? part.content : `${part.content}\n` },
  ],
  { verify: { parse: true } },
);
return (await z.find('slugify', { mode: 'definitions' })).items.map((item) => item.path);
