export function priceOf(item) {
  return item.cents * item.count;
}
