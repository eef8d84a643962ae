const { entries } = await z.read('.');
return [entries.map((e) => e.path), await z.read('\\xff')];
