await z.edit('deep/er/new', { create: 'x\n' });
