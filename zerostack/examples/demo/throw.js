// Change the tree in every way there is, then fail.
await z.edit("README.md", { content: "gone\n" }, { expect: "any" });
await z.apply([
  { path: "src/new/deep/file.rs", create: "fn new() {}\n" },
  { move: ["src/utf8.rs", "src/moved.rs"] },
  { path: "Cargo.toml", mode: 0o600 },
  { symlink: ["src/lib.rs", "link.rs"] },
]);
await z.run("rm -r src/hir && chmod 755 README.md && mkdir empty && echo more >> src/lib.rs");
const left = await z.read("src", { recursive: true });
throw new Error(`after all this there are ${left.entries.length} entries below src`);
