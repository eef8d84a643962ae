const { items } = await z.find('Circle::area', { mode: 'definitions' });
return items.map((i) => [i.path, i.symbol, i.kind, i.range.start.line]);
