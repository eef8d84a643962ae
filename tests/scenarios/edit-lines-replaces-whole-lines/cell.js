await z.read('a');
const { status, diff } = await z.edit('a', { lines: [2, 2], content: '2\n3\n' });
return { status, diff };
