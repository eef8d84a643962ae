return [typeof Deno, typeof WebAssembly, (() => { try { eval('1'); return 'ran'; } catch (e) { return e.name; } })()];
