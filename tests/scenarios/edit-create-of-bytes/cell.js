await z.edit('bin', { create: new Uint8Array([0, 255, 10]) });
