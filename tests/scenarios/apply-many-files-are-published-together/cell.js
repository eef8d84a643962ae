const names = Array.from({ length: 40 }, (_, n) => `f${n}`);
await z.apply(names.map((path) => ({ path, create: path })));
return (await z.find('f*', { mode: 'paths' })).total;
