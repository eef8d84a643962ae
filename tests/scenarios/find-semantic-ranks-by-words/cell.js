const { items } = await z.find('sum of all areas', { mode: 'semantic' });
return items[0].symbol.split('::').pop();
