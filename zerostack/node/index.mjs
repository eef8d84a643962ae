import kernel from './index.js';

export const { Interrupt, ZeroKernel, ZeroKernelError } = kernel;
