const { items } = await z.find('main', { mode: 'callPath', to: 'square' });
return items.map((i) => i.symbol.split('::').pop());
