await z.state.set('plan', { step: 2 });
