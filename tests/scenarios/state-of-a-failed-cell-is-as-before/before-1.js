await z.state.set('k', 'kept');
