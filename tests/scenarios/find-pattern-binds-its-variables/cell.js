const { items } = await z.find('square($X)', { mode: 'pattern', language: 'rust' });
return items.map((i) => i.captures.X.text ?? i.captures.X);
