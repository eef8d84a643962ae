//! What Rust must get right.

use zero_contracts::find::{Absence, Confidence, FindMode, FindOptions, OneOrMany};

use crate::fixtures::Fixture;

#[test]
fn use_trees_reexports_globs_and_paths() {
    let f = Fixture::new(
        "//- src/lib.rs
mod a;
pub mod b { pub use crate::a::{/*u1*/one as uno, deep::*}; pub fn inner() { super::a::/*u2*/one(); self::/*u3*/two(); } }
use b::*;
fn root() { /*u4*/uno(); /*u5*/two(); crate::a::deep::/*u6*/two(); }
//- src/a.rs
pub fn /*one*/one() {}
#[path = \"other.rs\"]
pub mod deep;
//- src/other.rs
pub fn /*two*/two() { super::/*u7*/one() }
",
    );
    assert_eq!(
        f.references("one"),
        ["u7 > one", "u1 > one", "u2 > one", "u4 > one"]
            .map(String::from)
            .to_vec()
            .tap_sorted(&f, "one")
    );
    assert_eq!(f.references("two"), ["u3 > two", "u5 > two", "u6 > two"]);
    assert_eq!(f.definitions("a::deep::two"), ["two"]);
}

trait Sorted {
    fn tap_sorted(self, fixture: &Fixture, name: &str) -> Vec<String>;
}

impl Sorted for Vec<String> {
    /// Puts expectations into the order of answers, so that a fixture need not follow the order of paths.
    fn tap_sorted(mut self, fixture: &Fixture, name: &str) -> Vec<String> {
        let order = fixture.references(name);
        self.sort_by_key(|item| order.iter().position(|o| o == item).unwrap_or(usize::MAX));
        self
    }
}

#[test]
fn methods_follow_the_receiver() {
    let f = Fixture::new(
        "//- src/lib.rs
pub struct A { b: B }
pub struct B;
impl A { pub fn new() -> Self { A { b: B } } pub fn /*a*/go(&self) -> &B { &self.b } }
impl B { pub fn /*b*/go(&self) {} }
fn /*free*/go() {}
fn all(p: &A, list: Vec<B>, maybe: Option<A>) {
    p./*1*/go()./*2*/go();
    /*3*/go();
    let local = A::new();
    local.b./*4*/go();
    for item in &list { item./*5*/go(); }
    list.iter().filter(|x| { x./*6*/go(); true }).for_each(|y| y./*7*/go());
    if let Some(a) = maybe { a./*8*/go(); }
    let local = B;
    local./*9*/go();
    let f = /*10*/go;
    assert_eq!(A::new()./*11*/go(), B./*12*/go());
}
",
    );
    assert_eq!(f.references("A::go"), ["1 > a", "8 > a", "11 > a"]);
    assert_eq!(
        f.references("B::go"),
        ["2 > b", "4 > b", "5 > b", "6 > b", "7 > b", "9 > b", "12 > b"]
    );
    let free: Vec<String> = f.references("go").into_iter().filter(|r| r.ends_with("free")).collect();
    assert_eq!(free, ["3 > free", "10 > free"]);
}

#[test]
fn traits_bounds_and_defaults() {
    let f = Fixture::new(
        "//- src/lib.rs
pub trait Shape { type Unit; fn /*decl*/area(&self) -> u32; fn /*default*/twice(&self) -> u32 { self./*1*/area() * 2 } }
pub struct Square(u32);
impl Shape for Square { type Unit = u8; fn /*square*/area(&self) -> u32 { self.0 } }
fn generic<T: Shape>(t: &T) -> u32 { t./*2*/area() }
fn dynamic(t: &dyn Shape) -> u32 { t./*3*/area() }
fn concrete(s: Square) -> u32 { s./*4*/area() + s./*5*/twice() }
",
    );
    assert_eq!(f.references("Shape::area"), ["1 > decl", "2 > decl", "3 > decl"]);
    assert_eq!(f.references("Square::area"), ["4 > square"]);
    assert_eq!(f.references("twice"), ["5 > default"]);
}

#[test]
fn macros_are_read_without_false_hits() {
    let f = Fixture::new(
        "//- src/lib.rs
fn /*f*/check(n: u32) -> bool { n > 0 }
macro_rules! /*m*/test_case { ($name:ident, $e:expr) => { #[test] fn $name() { assert!($e); } }; }
test_case!(/*t*/works, /*1*/check(1));
fn run() {
    assert!(/*2*/check(1), \"{}\", 3);
    println!(\"check {}\", if /*3*/check(2) { 1 } else { 2 });
    let check = 5;
    assert_eq!(check, 5);
    /*4*/test_case!(inner, true);
}
",
    );
    assert_eq!(f.references("check"), ["1 > f", "2 > f", "3 > f"]);
    assert_eq!(f.definitions("works"), ["t"]);
    assert!(f.ask(FindMode::Definitions, "works").items[0].test);
    assert_eq!(f.callers("check"), ["works", "run", "run"]);
    assert!(f.references("test_case").contains(&"4 > m".to_owned()));
}

#[test]
fn macro_arguments_name_items_through_other_macros_and_rounds() {
    let f = Fixture::new(
        "//- src/lib.rs
macro_rules! one { ($what:ident, $name:ident, $e:expr) => { #[test] fn $name() { assert_eq!($e, $what()); } }; }
macro_rules! through { ($($tt:tt)*) => { one!(check, $($tt)*); }; }
macro_rules! many { ($($name:ident = $e:expr),* $(,)?) => { $( pub const $name: u32 = $e; )* }; }
fn check() -> u32 { 1 }
through!(/*t*/passed, 1);
many! { /*a*/FIRST = 1, /*b*/SECOND = 2 }
fn run() -> u32 { /*1*/FIRST + /*2*/SECOND }
",
    );
    assert_eq!(f.definitions("passed"), ["t"]);
    assert_eq!(f.definitions("FIRST"), ["a"]);
    assert_eq!(f.references("FIRST"), ["1 > a"]);
    assert_eq!(f.references("SECOND"), ["2 > b"]);
}

#[test]
fn items_are_found_between_lines_of_a_macros_own() {
    let f = Fixture::new(
        "//- src/lib.rs
template! {
/// A graph.
pub trait Graph {
    @escape [type Node]
    @section nodelegate
    /// A node.
    type /*node*/Node;
    @section self
    fn /*first*/first(self: &Self) -> Self::/*1*/Node;
}
}
fn run<G: Graph>(g: &G) -> G::/*2*/Node { g./*3*/first() }
",
    );
    assert_eq!(f.references("Node"), ["1 > node", "2 > node"]);
    assert_eq!(f.references("first"), ["3 > first"]);
}

#[test]
fn functions_as_values_and_names_that_are_shadowed() {
    let f = Fixture::new(
        "//- src/lib.rs
mod deep { pub mod deeper { pub fn /*f*/step(n: u32) -> u32 { if n > 0 { super::super::/*1*/twice(n) } else { n } } } }
use deep::deeper::step;
fn /*g*/twice(n: u32) -> u32 { n * 2 }
fn apply(f: fn(u32) -> u32) -> u32 { f(1) }
struct Holder { step: fn(u32) -> u32 }
fn run(list: Vec<u32>) {
    list.iter().copied().map(/*2*/step).map(/*3*/twice);
    apply(/*4*/step);
    let h = Holder { step: /*5*/step };
    (h.step)(1);
    let step = |n: u32| n;
    step(2);
    { let twice = 3; let _ = twice; }
    /*6*/twice(3);
    println!(\"{}\", if list.is_empty() { /*7*/twice(1) } else { 0 });
}
",
    );
    let free = |query: &str, mark: &str| {
        let found = f.references(query).into_iter();
        found.filter(|r| r.ends_with(&format!("> {mark}"))).collect::<Vec<_>>()
    };
    let of_step = free("step", "f");
    for use_ in ["2", "4", "5"] {
        assert!(of_step.contains(&format!("{use_} > f")), "{use_} in {of_step:?}");
    }
    // The import, and the three above.
    assert_eq!(of_step.len(), 4);
    assert_eq!(free("twice", "g"), ["1 > g", "3 > g", "6 > g", "7 > g"]);
}

#[test]
fn benches_and_examples_are_crates_of_their_own() {
    let f = Fixture::new(
        "//- Cargo.toml
[package]
name = \"pack\"
//- src/lib.rs
pub struct Store;
impl Store { pub fn new() -> Self { Store } pub fn /*load*/load(&self) {} }
//- benches/speed.rs
use pack::Store;
fn bench() { Store::new()./*1*/load(); }
//- examples/show.rs
fn main() { pack::Store::new()./*2*/load(); }
",
    );
    assert_eq!(f.references("load"), ["1 > load", "2 > load"]);
}

#[test]
fn library_methods_of_the_same_name_are_not_ours() {
    let f = Fixture::new(
        "//- src/lib.rs
pub struct Stack;
impl Stack { pub fn /*push*/push(&mut self, n: u32) {} pub fn /*len*/len(&self) -> usize { 0 } }
fn run(mut s: Stack, mut v: Vec<u32>, t: &str) { v.push(1); s./*1*/push(2); t.len(); v.len(); s./*2*/len(); }
",
    );
    assert_eq!(f.references("push"), ["1 > push"]);
    assert_eq!(f.references("len"), ["2 > len"]);
}

#[test]
fn copies_for_configurations_are_all_listed() {
    let f = Fixture::new(
        "//- src/lib.rs
#[cfg(unix)]
fn /*unix*/path() {}
#[cfg(windows)]
fn /*windows*/path() {}
fn run() { path(); }
",
    );
    assert_eq!(f.definitions("path"), ["unix", "windows"]);
    let item = &f.ask(FindMode::References, "path").items[0];
    assert_eq!(
        (item.definition.as_ref().unwrap().line, item.confidence),
        (2, Some(Confidence::Exact))
    );
    assert_eq!(item.alternatives.len(), 1);
}

#[test]
fn crates_of_a_workspace_and_their_tests() {
    let f = Fixture::new(
        "//- core/Cargo.toml
[package]
name = \"my-core\"
//- core/src/lib.rs
pub fn /*f*/shared() {}
//- app/Cargo.toml
[package]
name = \"app\"
//- app/src/main.rs
fn main() { my_core::/*1*/shared(); }
//- app/tests/all.rs
#[test]
fn it_works() { my_core::/*2*/shared(); }
",
    );
    assert_eq!(
        f.references("shared"),
        ["1 > f", "2 > f"].map(String::from).to_vec().tap_sorted(&f, "shared")
    );
    let impact = f.ask(FindMode::Impact, "shared");
    let tests: Vec<(String, bool)> = impact
        .items
        .iter()
        .map(|i| (i.symbol.clone().unwrap_or_default(), i.test))
        .collect();
    assert!(tests.contains(&("it_works".into(), true)) && tests.contains(&("main".into(), false)));
}

#[test]
fn impact_and_call_paths() {
    let f = Fixture::new(
        "//- src/lib.rs
fn d() {}
fn c() { d() }
fn b() { c(); d() }
fn a() { b() }
fn alone() {}
",
    );
    let impact = f.ask(FindMode::Impact, "d");
    let names: Vec<_> = impact
        .items
        .iter()
        .map(|i| (i.symbol.clone().unwrap(), i.via.clone()))
        .collect();
    let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        names,
        [
            ("c".to_owned(), owned(&["d"])),
            ("b".to_owned(), owned(&["d"])),
            ("a".to_owned(), owned(&["b", "d"])),
        ]
    );
    let options = FindOptions {
        mode: FindMode::CallPath,
        to: Some("d".into()),
        ..FindOptions::default()
    };
    let path: Vec<_> = f
        .ask_with("a", options.clone())
        .items
        .iter()
        .map(|i| i.symbol.clone().unwrap())
        .collect();
    assert_eq!(path, ["a", "b", "d"]);
    assert!(f.ask_with("alone", options).items.is_empty());
    assert_eq!(f.ask(FindMode::Callees, "b").items.len(), 2);
}

#[test]
fn fresh_by_construction() {
    let f = Fixture::new(
        "//- src/lib.rs\npub fn callee() {}\n//- src/user.rs\nuse crate::callee;\nfn user() { callee() }\n",
    );
    f.view
        .write("src/lib.rs", "mod user;\n\n\n\n\n\npub fn callee() -> u8 { 1 }\n");
    let found = f.ask(FindMode::Definitions, "callee");
    assert_eq!(
        (found.items[0].range.start.line, found.items[0].text.as_str()),
        (7, "pub fn callee() -> u8 { 1 }")
    );
    assert_eq!(f.callers("callee"), ["user::user"]);
    f.view.remove("src/user.rs");
    let gone = f.ask(FindMode::Definitions, "user::user");
    assert_eq!((gone.total, gone.absence), (0, Some(Absence::Certified)));
    assert!(f.callers("callee").is_empty());
}

#[test]
fn absence_is_certified_only_when_nothing_can_hide() {
    let f = Fixture::new("//- src/lib.rs\nfn ok() {}\n//- notes.md\nmissing is mentioned here\n");
    assert_eq!(
        f.ask(FindMode::Definitions, "missing").absence,
        Some(Absence::Certified)
    );
    f.view.write("src/bad.rs", "fn broken( { missing } struct");
    let answer = f.ask(FindMode::Definitions, "missing");
    assert_eq!(answer.absence, Some(Absence::Uncertified));
    assert_eq!(answer.coverage.skipped[0].why, "syntax_errors");
    assert_eq!(f.ask(FindMode::Definitions, "other").absence, Some(Absence::Certified));
    let scoped = FindOptions {
        mode: FindMode::Definitions,
        path: Some(OneOrMany::One("src/lib.rs".into())),
        ..FindOptions::default()
    };
    assert_eq!(f.ask_with("missing", scoped).absence, Some(Absence::Certified));
}
