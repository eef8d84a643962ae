await z.apply([{ move: ['a', 't'] }, { move: ['b', 'a'] }, { move: ['t', 'b'] }]);
