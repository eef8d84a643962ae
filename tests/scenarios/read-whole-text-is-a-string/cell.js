return await z.read('a');
