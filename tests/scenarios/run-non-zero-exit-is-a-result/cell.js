return (await z.run('exit 3')).exitCode;
