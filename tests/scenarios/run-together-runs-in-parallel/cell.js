const started = Date.now();
const all = await Promise.all([1, 2, 3, 4].map((n) => z.run(`sleep 0.5; echo ${n}`)));
return { out: all.map((r) => r.stdout.trim()), parallel: Date.now() - started < 1800 };
