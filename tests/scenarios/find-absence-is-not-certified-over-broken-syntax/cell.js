const { total, absence, coverage } = await z.find('missing', { mode: 'definitions' });
return [total, absence, coverage.withErrors];
