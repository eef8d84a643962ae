const { items } = await z.find('^v\\d+\\.\\d+$', { mode: 'regex' });
return items.map((i) => i.text.trim());
