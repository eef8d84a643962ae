await z.find('(', { mode: 'regex' });
