await z.read('a', { snapshot: true });
