const all = []; for (;;) all.push(new Array(1000).fill(all.length));
