const { items, total, complete } = await z.find('two');
const [{ path, range, text, digest }] = items;
return { path, start: range.start, text, guard: digest.length, total, complete };
