import kernel from './index.js';

export const { ZeroKernel, ZeroKernelError } = kernel;
