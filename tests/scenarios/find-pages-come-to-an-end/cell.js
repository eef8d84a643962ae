const sizes = [];
let next;
do {
  const page = await z.find('x', { limit: 4, next });
  sizes.push(page.items.length);
  next = page.next;
} while (next);
return sizes;
