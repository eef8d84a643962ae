const started = Date.now();
const { stdout, cleanup } = await z.run('sleep 60 & echo hi');
return { stdout, cleanup, soon: Date.now() - started < 10000 };
