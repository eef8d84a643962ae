const { digest } = await z.read('a', { snapshot: true });
await z.state.set('kept', { key: `z://blob/${digest}` });
