await z.state.set('ключ/鍵', '🗝️'); return await z.state.list();
