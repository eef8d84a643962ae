import { costOf } from '../src/prices.js';

if (costOf({ cents: 5, count: 2 }) !== 10) throw new Error('wrong');
