return await z.state.get('plan');
