const { termination, signal } = await z.run('kill -9 $$'); return [termination, signal];
