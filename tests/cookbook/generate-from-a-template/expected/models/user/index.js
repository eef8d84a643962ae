export const table = 'user';
