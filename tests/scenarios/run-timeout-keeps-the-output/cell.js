const { reason, stdout, cleanup } = await z.run('echo before; sleep 60', { timeoutMs: 300 });
return { reason, stdout, cleanup };
