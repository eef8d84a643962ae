await z.run(['true'], { cwd: '..' });
