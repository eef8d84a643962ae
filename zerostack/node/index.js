'use strict';

const { Interrupt, NotSent, ZeroKernel, ZeroKernelError } = require('./lib/kernel');

module.exports = { Interrupt, NotSent, ZeroKernel, ZeroKernelError };
