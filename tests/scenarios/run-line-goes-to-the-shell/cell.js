return (await z.run('cat a | wc -l')).stdout.trim();
