await z.edit('tool', { mode: 0o755 });
