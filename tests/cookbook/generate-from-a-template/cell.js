const template = await z.read('template.js');
const names = ['user', 'order'];
await z.apply(
  names.flatMap((name) => [
    { path: `models/${name}/index.js`, create: template.replaceAll('NAME', name) },
    { symlink: ['index.js', `models/${name}/main.js`] },
  ]),
  { verify: { parse: true } },
);
return (await z.read('models', { recursive: true })).entries.map((entry) => entry.path);
