const header = '// SPDX-License-Identifier: MIT';
const { items } = await z.find('src/**/*.js', { mode: 'paths', limit: 1000 });
const texts = await Promise.all(items.map(async ({ path }) => [path, await z.read(path)]));
const missing = texts.filter(([, text]) => !text.includes('SPDX-License-Identifier')).map(([path]) => path);
await z.apply(missing.map((path) => ({ path, insertBefore: 1, content: header })));
return missing;
