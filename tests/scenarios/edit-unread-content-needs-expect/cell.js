await z.edit('a', { content: 'x' });
