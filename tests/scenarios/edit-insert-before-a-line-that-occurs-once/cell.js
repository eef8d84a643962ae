await z.edit('a', { insertBefore: 'two', content: 'one and a half' });
