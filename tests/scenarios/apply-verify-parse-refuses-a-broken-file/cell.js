await z.apply([{ path: 'm.rs', find: '{}', replacement: '{' }], { verify: { parse: true } });
