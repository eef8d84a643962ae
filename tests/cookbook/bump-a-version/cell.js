const { content } = await z.read('package.json', { pointer: '/version' });
const from = JSON.parse(content);
const [major, minor] = from.split('.').map(Number);
const to = `${major}.${minor + 1}.0`;
const { receipts } = await z.apply([
  { path: 'package.json', find: `"version": "${from}"`, replacement: `"version": "${to}"` },
  { path: 'README.md', find: `demo@${from}`, replacement: `demo@${to}`, count: 'all' },
  { path: 'CHANGELOG.md', insertBefore: `## ${from}`, content: `## ${to}\n\n- …\n\n` },
]);
return { from, to, changed: receipts.map((receipt) => receipt.path) };
