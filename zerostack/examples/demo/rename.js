// Correct a misspelt function name everywhere, and let the compiler judge the result.
const { wrong, right } = input;

const [definitions, callers, uses] = await Promise.all([
  z.find(wrong, { mode: "definitions", path: "src" }),
  z.find(wrong, { mode: "callers", path: "src" }),
  z.find(wrong, { mode: "word", path: "src", limit: 1000 }),
]);

const files = [...new Set(uses.items.map((use) => use.path))];
const operations = files.map((path) => ({ path, find: wrong, replacement: right, count: "all" }));
const { receipts } = await z.apply(operations, { verify: { parse: true } });

const compiled = await z.run(
  'rustc --edition 2021 --crate-type lib --crate-name demo --emit metadata --out-dir "$(mktemp -d)" src/lib.rs',
);
if (compiled.exitCode !== 0) throw new Error(compiled.stderr);

return {
  definition: definitions.items.map((d) => `${d.path}:${d.range.start.line}`),
  callers: callers.items.map((c) => `${c.symbol} (${c.confidence})`),
  edited: receipts.map((receipt) => receipt.path),
  replaced: uses.total,
  rustc: compiled.exitCode,
};
