await z.run([]);
