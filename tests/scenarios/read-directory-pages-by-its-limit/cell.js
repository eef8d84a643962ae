const names = [];
let next;
do {
  const page = await z.read('d', { limit: 2, next });
  names.push(page.entries.length);
  next = page.next;
} while (next);
return names;
