const { items } = await z.find('src/lib.rs', { mode: 'imports' });
return items.length > 0 && items.every((i) => i.path === 'src/lib.rs');
