const { content, range } = await z.read('lib.rs', { symbol: 'Counter::next' });
return { content, lines: range.lines };
