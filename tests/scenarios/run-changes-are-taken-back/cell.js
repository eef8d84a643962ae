await z.run('rm a; mkdir d; echo x > d/y');
throw new Error('on purpose');
