await z.apply([{ move: ['none', 'c'] }]);
