await z.apply([{ path: 'a', find: 'two', replacement: '2' }], { verify: { command: ['grep', '-q', '^2$', 'a'] } });
