await z.edit('a', { find: 'two', replacement: '2' });
while (!(await z.find('signal', { mode: 'paths' })).total) await new Promise((done) => setTimeout(done, 10));
