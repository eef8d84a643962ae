await z.state.set('b/2', 2);
await z.state.set('b/1', 1);
await z.state.set('a', 0);
return await z.state.list('b/');
