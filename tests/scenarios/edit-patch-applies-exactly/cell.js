await z.edit('a', { patch: '@@ -1,2 +1,3 @@\n one\n+and a half\n two\n' });
