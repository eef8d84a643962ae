const { exitCode, stdout } = await z.run(['cat']); return [exitCode, stdout];
