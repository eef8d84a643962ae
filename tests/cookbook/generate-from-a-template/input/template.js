export const table = 'NAME';
