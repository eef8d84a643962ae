import { priceOf } from './prices.js';

export function total(items) {
  return items.reduce((sum, item) => sum + priceOf(item), 0);
}
