await z.state.set('n', 1);
