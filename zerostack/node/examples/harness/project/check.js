'use strict';

const { discounted, bulk } = require('./src/price');

const results = [discounted(50, 0.1) === 45, bulk(50, 0.1, 2) === 90];
const failed = results.filter((well) => !well).length;
console.log(`${results.length - failed} of ${results.length} prices are right`);
process.exitCode = failed > 0 ? 1 : 0;
