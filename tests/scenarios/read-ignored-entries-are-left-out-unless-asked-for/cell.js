const plain = await z.read('.', { recursive: true });
const all = await z.read('.', { recursive: true, ignored: true });
const has = (listing) => listing.entries.some((e) => e.path === 'out/x');
return [has(plain), has(all)];
