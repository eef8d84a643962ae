await z.apply([
  { path: "a.txt", find: "two", replacement: "2" },
  { path: "gone.txt", remove: true, expect: "any" },
  { move: ["d/from.txt", "d/to.txt"] },
  { path: "new/made.txt", create: "made\n" },
]);
await z.state.set("done", true);
return "all of it";
