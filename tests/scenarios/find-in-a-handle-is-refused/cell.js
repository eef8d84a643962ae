const { snapshot } = await z.read('a', { snapshot: true });
return z.find('one', { path: snapshot });
