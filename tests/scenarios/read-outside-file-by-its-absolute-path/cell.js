return await z.read(`${input.outside}/note`);
