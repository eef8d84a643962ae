await z.apply([{ path: 'd', remove: true, expect: 'any' }]);
