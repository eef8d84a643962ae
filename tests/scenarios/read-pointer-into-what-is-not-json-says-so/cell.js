await z.read('a', { pointer: '/x' });
