await z.edit('a', { content: 'x'.repeat(5000) }, { expect: 'any' });
