return [await z.state.get('none')];
