await z.state.set('k', 1);
