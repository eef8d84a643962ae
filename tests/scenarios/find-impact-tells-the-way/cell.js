const { items } = await z.find('square', { mode: 'impact' });
return items.map((i) => i.symbol.split('::').pop()).sort();
