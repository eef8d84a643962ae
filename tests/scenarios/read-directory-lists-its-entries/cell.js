const { kind, entries, complete } = await z.read('d');
return { kind, complete, names: entries.map((e) => [e.path, e.kind]) };
