const { items } = await z.find('needle');
return [items[0].range.start.column, items[0].range.start.byte];
