await z.state.set('k', { n: 1 });
return z.state.list();
