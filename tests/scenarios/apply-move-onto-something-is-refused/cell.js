await z.apply([{ move: ['a', 'b'] }]);
