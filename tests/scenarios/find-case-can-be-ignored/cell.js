const strict = await z.find('readme');
const loose = await z.find('readme', { case: 'insensitive' });
return [strict.total, loose.total];
