const { reason, cleanup } = await z.run('yes');
return [reason, cleanup];
