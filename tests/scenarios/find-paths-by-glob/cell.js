const { items } = await z.find('src/*.rs', { mode: 'paths' });
return items.map((i) => i.path);
