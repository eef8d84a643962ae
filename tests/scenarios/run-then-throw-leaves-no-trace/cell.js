await z.run('rm -r d && echo changed > a && ln -s a l && chmod 700 b');
throw new Error('changed my mind');
