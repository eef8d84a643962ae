try { await z.state.set('k', 'lost', { expect: 'other' }); } catch {}
