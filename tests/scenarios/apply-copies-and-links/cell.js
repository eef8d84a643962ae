await z.apply([{ copy: ['a', 'c'] }, { symlink: ['a', 'l'] }, { mkdir: 'd/e' }]);
