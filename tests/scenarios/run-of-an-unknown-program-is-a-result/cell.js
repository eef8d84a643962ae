const { termination } = await z.run(['no-such-program-anywhere']);
return termination;
