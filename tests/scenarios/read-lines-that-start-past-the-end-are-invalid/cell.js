await z.read('a', { lines: [9, 12] });
