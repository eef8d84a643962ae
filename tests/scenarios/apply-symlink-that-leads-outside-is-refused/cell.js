await z.apply([{ symlink: ['../outside', 'l'] }]);
