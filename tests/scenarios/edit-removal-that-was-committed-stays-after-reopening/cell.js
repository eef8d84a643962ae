return [(await z.find('*', { mode: 'paths' })).items.map((item) => item.path), await z.read('a').catch((e) => e.kind)];
