await z.edit('a', { remove: true }, { expect: 'any' });
