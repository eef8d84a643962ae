await z.state.set('k', 1); return [await z.state.delete('k'), await z.state.delete('k'), await z.state.get('k')];
