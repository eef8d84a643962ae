const { items } = await z.find('Circle::area', { mode: 'callees' });
return items.map((i) => i.symbol);
