await z.read('l');
