await z.find('x', { max: 3 });
