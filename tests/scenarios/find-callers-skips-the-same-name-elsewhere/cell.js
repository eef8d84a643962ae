const { items } = await z.find('open', { mode: 'callers' });
return items.map((item) => item.symbol);
