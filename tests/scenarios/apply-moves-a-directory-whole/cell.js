await z.apply([{ move: ['d', 'elsewhere/d'] }]);
