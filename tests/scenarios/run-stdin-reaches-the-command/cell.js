return (await z.run(['tr', 'a-z', 'A-Z'], { stdin: 'shout' })).stdout;
