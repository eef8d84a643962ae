await z.edit('n.rs', { create: 'pub fn fresh() {}\n' });
const { items } = await z.find('fresh', { mode: 'definitions' });
return [items[0].path, items[0].range.start.line];
