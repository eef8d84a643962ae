await z.read('package.json', { pointer: '/scripts/none' });
