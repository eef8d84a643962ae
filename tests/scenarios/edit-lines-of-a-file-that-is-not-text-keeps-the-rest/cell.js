await z.edit('blob', { lines: [1, 1], content: 'x' }, { expect: 'any' });
