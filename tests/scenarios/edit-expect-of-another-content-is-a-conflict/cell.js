await z.edit('a', { find: 'one', replacement: '1' }, { expect: '0'.repeat(64) });
