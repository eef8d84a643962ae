await z.run(['sleep', '60']);
