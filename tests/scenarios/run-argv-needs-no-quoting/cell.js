return (await z.run(['printf', '%s|', 'a b', '$HOME', '*'])).stdout;
