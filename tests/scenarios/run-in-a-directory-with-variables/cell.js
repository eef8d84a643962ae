return (await z.run('echo $WHO in $(basename $PWD)', { cwd: 'd', env: { WHO: 'me' } })).stdout;
