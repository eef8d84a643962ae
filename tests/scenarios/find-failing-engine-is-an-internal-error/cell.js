await z.find('two');
