const { items } = await z.find('cat', { mode: 'word' });
return items.map((i) => i.range.start.line);
