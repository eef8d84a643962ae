'use strict';

const { ZeroKernelError } = require('./lib/errors');
const { ZeroKernel } = require('./lib/kernel');

module.exports = { ZeroKernel, ZeroKernelError };
