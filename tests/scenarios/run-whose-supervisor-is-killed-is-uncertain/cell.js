return await z.run(['sleep', '1800.25']);
