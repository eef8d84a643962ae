await z.edit('src/shapes.rs', { remove: true }, { expect: 'any' });
return (await z.find('square', { mode: 'definitions' })).total;
