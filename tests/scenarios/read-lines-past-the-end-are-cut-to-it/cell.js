const { content, range } = await z.read('a', { lines: [2, 99] });
return { content, lines: range.lines };
