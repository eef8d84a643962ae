await z.edit('a', { create: 'x' });
