await z.state.set('k', 1);
const seen = await z.state.get('k');
throw new Error(`saw ${seen}`);
