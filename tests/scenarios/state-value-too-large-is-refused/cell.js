await z.state.set('k', 'x'.repeat(9000));
