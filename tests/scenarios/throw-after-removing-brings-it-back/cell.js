await z.edit('a', { remove: true }, { expect: 'any' });
throw new Error('on purpose');
