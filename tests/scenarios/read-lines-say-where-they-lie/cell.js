const part = await z.read('a', { lines: [2, 9] });
return [part.content, part.range.lines, part.of.lines];
