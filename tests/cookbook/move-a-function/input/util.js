export function trim(s) {
  return s.trim();
}

export function slugify(s) {
  return s.toLowerCase().replaceAll(' ', '-');
}

export const version = 1;
