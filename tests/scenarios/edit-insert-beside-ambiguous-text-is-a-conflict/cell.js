await z.edit('a', { insertAfter: 'x', content: 'y' });
