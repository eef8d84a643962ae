const { items } = await z.find('TODO', { mode: 'word', limit: 1000 });
const lines = items.map(({ path, range, text }) => {
  const what = text.slice(text.indexOf('TODO') + 4).replace(/^[:\s]+/, '');
  return `- [ ] ${what} (${path}:${range.start.line})`;
});
await z.edit('TODO.md', { create: `# To do\n\n${lines.join('\n')}\n` });
return lines.length;
