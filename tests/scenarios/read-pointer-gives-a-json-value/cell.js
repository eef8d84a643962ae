const { content } = await z.read('package.json', { pointer: '/scripts/test~1all' });
return content;
