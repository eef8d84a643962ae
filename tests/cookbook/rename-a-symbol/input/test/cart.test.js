import { priceOf } from '../src/prices.js';

if (priceOf({ cents: 5, count: 2 }) !== 10) throw new Error('wrong');
