await z.run(['true']);
