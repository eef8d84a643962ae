export function slugify(s) {
  return s.toLowerCase().replaceAll(' ', '-');
}
