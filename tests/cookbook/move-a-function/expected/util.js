export function trim(s) {
  return s.trim();
}

export { slugify } from './slug.js';

export const version = 1;
