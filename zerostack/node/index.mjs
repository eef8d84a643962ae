import kernel from './index.js';

export const { Interrupt, NotSent, ZeroKernel, ZeroKernelError } = kernel;
