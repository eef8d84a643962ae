const { content, range, of } = await z.read('a', { bytes: [1, 4] });
return { content, range, of };
