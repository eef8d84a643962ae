await z.find('x', { mode: 'fuzzy' });
