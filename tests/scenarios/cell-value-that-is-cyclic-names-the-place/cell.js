const a = { b: {} }; a.b.c = a; return a;
