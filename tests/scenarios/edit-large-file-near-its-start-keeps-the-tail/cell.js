await z.edit('large', { find: 'needle', replacement: 'pin' });
