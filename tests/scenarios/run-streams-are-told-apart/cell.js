const { stdout, stderr, bytes } = await z.run('echo out; echo err >&2');
return { stdout, stderr, bytes };
