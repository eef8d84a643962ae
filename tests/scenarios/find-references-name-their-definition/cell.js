const { items } = await z.find('square', { mode: 'references' });
return items.map((i) => [i.path, i.range.start.line, i.definition.line, i.confidence]);
