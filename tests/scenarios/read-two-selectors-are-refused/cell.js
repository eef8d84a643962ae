await z.read('a', { lines: [1, 1], bytes: [0, 1] });
