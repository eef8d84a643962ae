await z.find('x', { path: 'nowhere' });
