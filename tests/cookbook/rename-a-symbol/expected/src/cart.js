import { costOf } from './prices.js';

export function total(items) {
  return items.reduce((sum, item) => sum + costOf(item), 0);
}
