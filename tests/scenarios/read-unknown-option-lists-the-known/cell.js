await z.read('a', { line: [1, 1] });
