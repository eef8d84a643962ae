await z.read('n'.repeat(300));
