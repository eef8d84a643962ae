'use strict';

/** Price after a discount, which is a fraction: 0.1 takes a tenth off. */
function discounted(price, discount) {
  return price - discount;
}

/** Price of several pieces after a discount. */
function bulk(price, discount, pieces) {
  return pieces * (price - discount);
}

module.exports = { discounted, bulk };
