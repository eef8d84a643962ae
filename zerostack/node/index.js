'use strict';

const { Interrupt, ZeroKernel, ZeroKernelError } = require('./lib/kernel');

module.exports = { Interrupt, ZeroKernel, ZeroKernelError };
