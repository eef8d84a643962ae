await z.edit('a', { find: 'one', replacement: '1' }); await new Promise(() => setTimeout(() => {}, 20000)); 
