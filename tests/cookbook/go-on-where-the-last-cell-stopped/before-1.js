const done = (await z.state.get('migrated')) ?? 0;
const { items } = await z.find('posts/*.md', { mode: 'paths' });
const batch = items.map((item) => item.path).slice(done, done + 2);
await z.apply(batch.map((path) => ({ path, insertBefore: 1, content: '---\nlayout: post\n---', expect: 'any' })));
await z.state.set('migrated', done + batch.length, { expect: done || null });
return { batch, left: items.length - done - batch.length };
