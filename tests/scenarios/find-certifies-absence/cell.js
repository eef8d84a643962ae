const { total, absence } = await z.find('nothing like this');
return [total, absence];
