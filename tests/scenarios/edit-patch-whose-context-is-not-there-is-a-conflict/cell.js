await z.edit('a', { patch: '@@ -1,2 +1,2 @@\n one\n-three\n+3\n' });
