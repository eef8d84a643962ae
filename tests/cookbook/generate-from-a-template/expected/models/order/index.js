export const table = 'order';
