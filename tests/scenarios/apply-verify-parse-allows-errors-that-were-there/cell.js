await z.apply([{ path: 'a.rs', find: 'one', replacement: 'two' }], { verify: { parse: true } });
