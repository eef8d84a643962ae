await z.read('b');
