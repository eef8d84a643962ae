const { key } = await z.state.get('kept');
return await z.read(key, { lines: [2, 2] }).then((part) => part.content);
