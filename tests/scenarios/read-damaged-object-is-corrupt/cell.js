await z.read(input.handle);
