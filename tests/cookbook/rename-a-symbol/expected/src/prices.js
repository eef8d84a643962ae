export function costOf(item) {
  return item.cents * item.count;
}
