//! Rules of Rust that decide which of several definitions is meant.

use zero_contracts::find::{Confidence, FindMode};

use crate::fixtures::Fixture;

/// Returns the confidence of the use at a mark.
fn sure(f: &Fixture, name: &str, mark: &str) -> Option<Confidence> {
    f.items(FindMode::References, name)
        .into_iter()
        .find(|(place, _)| place == mark)
        .and_then(|(_, item)| item.confidence)
}

#[test]
fn what_the_default_configuration_leaves_out_is_scoped() {
    let f = Fixture::new(
        "//- Cargo.toml
[package]
name = \"p\"
[features]
default = [\"std\"]
std = [\"fast\"]
fast = []
extra = []
//- src/lib.rs
#[cfg(feature = \"extra\")]
mod more;
#[cfg(feature = \"extra\")]
#[path = \"both.rs\"]
mod imp;
#[cfg(not(feature = \"extra\"))]
#[path = \"both.rs\"]
mod imp;
pub fn /*f*/f() {}
#[cfg(feature = \"fast\")]
fn a() { /*a*/f(); }
#[cfg(not(feature = \"fast\"))]
fn b() { /*b*/f(); }
fn c() {
    #[cfg(feature = \"extra\")]
    let _x = /*c1*/f();
    #[cfg(all(feature = \"std\", unix))]
    let _y = /*c2*/f();
    match 1 { #[cfg(windows)] 1 => /*c3*/f(), _ => /*c4*/f() }
}
//- src/both.rs
fn e() { crate::/*e*/f(); }
//- src/more.rs
fn d() { crate::/*d*/f(); }
",
    );
    for (mark, expected) in [
        ("a", Confidence::Exact),
        ("b", Confidence::Scoped),
        ("c1", Confidence::Scoped),
        ("c2", Confidence::Exact),
        ("c3", Confidence::Scoped),
        ("c4", Confidence::Exact),
        ("d", Confidence::Scoped),
        ("e", Confidence::Exact),
    ] {
        assert_eq!(sure(&f, "f", mark), Some(expected), "{mark}");
    }
}

#[test]
fn a_copy_for_another_configuration_is_no_symbol_of_its_own() {
    let f = Fixture::new(
        "//- src/lib.rs
#[cfg(unix)]
fn /*f*/f() {}
#[cfg(windows)]
fn /*other*/f() { fn /*inner*/g() {} }
struct A;
impl A {
    #[cfg(not(windows))]
    fn /*m*/m(&self) { const /*k*/K: u8 = 1; }
    #[cfg(windows)]
    fn /*other_m*/m(&self) { const /*other_k*/K: u8 = 2; }
}
trait T { fn /*t*/m(&self); }
#[cfg(windows)]
impl T for A { fn /*of_t*/m(&self) {} }
macro_rules! make { ($n:ident) => { fn $n() {} } }
#[cfg(unix)]
make!(/*made*/x);
#[cfg(windows)]
make!(/*other_made*/x);
fn all(a: &A) { f(); a.m(); }
",
    );
    assert_eq!(f.symbols("f"), ["f"]);
    assert_eq!(f.symbols("g"), ["inner"]);
    assert_eq!(f.symbols("m"), ["m", "t", "of_t",]);
    assert_eq!(f.symbols("K"), ["k"]);
    assert_eq!(f.symbols("x"), ["made"]);
    assert_eq!(f.definitions("f"), ["f", "other"]);
    assert_eq!(f.definitions("x"), ["made", "other_made"]);
}

#[test]
fn a_call_by_the_trait_leads_to_the_implementation_of_the_value() {
    let f = Fixture::new(
        "//- src/lib.rs
trait Shape { fn /*decl*/area(&self) -> f64; fn /*made*/make(n: u8) -> Self; fn /*eaten*/eat(self); }
struct A;
impl Shape for A { fn /*of_a*/area(&self) -> f64 { 0.0 } fn make(n: u8) -> A { A } fn /*eaten_a*/eat(self) {} }
impl Shape for str { fn /*of_str*/area(&self) -> f64 { 1.0 } }
fn all<S: Shape>(a: A, s: &S, d: &dyn Shape) {
    Shape::/*1*/area(&a);
    Shape::/*2*/area(\"x\");
    Shape::/*3*/area(s);
    Shape::/*4*/area(d);
    Shape::/*5*/eat(a);
}
",
    );
    assert_eq!(
        f.all_targets("area"),
        ["1 > of_a", "2 > of_str", "3 > decl", "4 > decl"]
    );
    assert_eq!(f.all_targets("eat"), ["5 > eaten_a"]);
}

#[test]
fn a_where_clause_of_a_known_type_comes_before_its_implementations() {
    let f = Fixture::new(
        "//- src/lib.rs
trait Visit<N> { fn /*decl*/visit(&self, n: N) -> bool; }
struct Set;
impl Visit<u8> for Set { fn /*one*/visit(&self, n: u8) -> bool { true } }
impl Visit<u16> for Set { fn /*two*/visit(&self, n: u16) -> bool { true } }
trait Filter<N> { fn filter(&self, n: N) -> bool; }
impl<N> Filter<N> for Set where Set: Visit<N> { fn filter(&self, n: N) -> bool { self./*1*/visit(n) } }
fn plain(set: &Set) { set./*2*/visit(1u16); }
",
    );
    assert_eq!(f.all_targets("visit"), ["1 > decl", "2 > two"]);
}

#[test]
fn an_implementation_for_mutable_references_comes_first_where_self_is_one() {
    let f = Fixture::new(
        "//- src/lib.rs
trait Buf { fn /*decl*/left(&self) -> usize; fn go(&mut self) { self./*1*/left(); (*self)./*2*/left(); self./*3*/step() }
    fn /*step*/step(&mut self); fn see(&self) { self./*4*/left(); } }
impl<T: Buf> Buf for &mut T { fn /*through*/left(&self) -> usize { (**self).left() } fn step(&mut self) {} }
trait Other { fn /*other*/rest(&self); fn go(&mut self) { self./*5*/rest(); } }
impl<T: Other> Other for &T { fn rest(&self) {} }
trait Made { fn /*plain*/size(&self); fn go(&mut self) { self./*6*/size(); } }
macro_rules! forward { () => { fn size(&self) {} } }
impl<T: Made> Made for &mut T { forward!(); }
struct A;
impl AsRef<[u8]> for A { fn /*own*/as_ref(&self) -> &[u8] { &[] } }
impl A { fn go(&mut self) { self.as_ref(); } fn see(&self) { self./*7*/as_ref(); } }
",
    );
    let left = f.references("left");
    for expected in ["1 > through", "2 > decl", "4 > decl"] {
        assert!(left.contains(&expected.to_owned()), "{expected}: {left:?}");
    }
    assert_eq!(f.references("step"), ["3 > step"]);
    assert_eq!(f.references("rest"), ["5 > other"]);
    assert_eq!(f.references("size"), ["6 > plain"]);
    assert_eq!(sure(&f, "size", "6"), Some(Confidence::Scoped));
    // The library implements this one for `&mut T` itself.
    assert_eq!(f.references("as_ref"), ["7 > own"]);
    assert_eq!(sure(&f, "left", "1"), Some(Confidence::Exact));
}

#[test]
fn implementations_of_one_trait_are_told_apart_by_items_and_by_references() {
    let f = Fixture::new(
        "//- src/lib.rs
struct Bag;
struct Item;
impl Extend<u8> for Bag { fn /*bytes*/extend<T: IntoIterator<Item = u8>>(&mut self, iter: T) {} }
impl Extend<Item> for Bag { fn /*items*/extend<T>(&mut self, iter: T) where T: IntoIterator<Item = Item> {} }
impl<'a> Extend<&'a u8> for Bag {
    fn /*refs*/extend<T>(&mut self, iter: T) where T: IntoIterator<Item = &'a u8> { self./*1*/extend(iter.into_iter().copied()) }
}
impl PartialEq<str> for Bag { fn /*text*/eq(&self, other: &str) -> bool { true } }
impl<'a> PartialEq<&'a str> for Bag { fn /*ref_text*/eq(&self, other: &&'a str) -> bool { true } }
fn all(mut bag: Bag, list: Vec<Item>, bytes: &[u8], text: &str) {
    bag./*2*/extend(list);
    bag./*3*/extend(bytes.iter());
    bag./*6*/extend(bytes.iter().map(|b| *b));
    bag./*4*/eq(text);
    bag./*5*/eq(&text);
}
",
    );
    assert_eq!(
        f.all_targets("extend"),
        ["1 > bytes", "2 > items", "3 > refs", "6 > bytes"]
    );
    assert_eq!(f.all_targets("eq"), ["4 > text", "5 > ref_text"]);
}

#[test]
fn what_takes_no_receiver_is_not_called_behind_a_dot() {
    let f = Fixture::new(
        "//- src/lib.rs
trait Index { fn /*max*/max() -> Self; fn /*get*/get(&self) -> u8; }
impl Index for u32 { fn max() -> u32 { 0 } fn get(&self) -> u8 { 0 } }
fn all(n: u32, m: u32) { n.max(m); n./*1*/get(); }
",
    );
    assert_eq!(f.references("max"), [""; 0]);
    assert_eq!(f.references("get").len(), 1);
}

#[test]
fn derived_constructors_give_the_type() {
    let f = Fixture::new(
        "//- src/lib.rs
#[derive(Default)]
struct Errors(Vec<u8>);
impl Errors { fn /*push*/push(&mut self, e: u8) {} }
fn all() { let mut errors = Errors::default(); errors./*1*/push(1); }
",
    );
    assert_eq!(f.references("push"), ["1 > push"]);
}

#[test]
fn arguments_of_macros_may_be_types_and_macros() {
    let f = Fixture::new(
        "//- src/lib.rs
#[macro_use]
mod macros;
struct /*named*/Named { a: u8 }
struct /*bytes*/Bytes { a: u8 }
fn /*func*/func() {}
implement!(Debug, /*1*/Named);
implement!(Debug, /*2*/Bytes);
implement!(Debug, /*3*/func);
implement! { /*4*/delegate [[G], G] }
//- src/macros.rs
macro_rules! implement { ($($t:tt)*) => {} }
macro_rules! /*delegate*/delegate { () => {} }
",
    );
    for (name, expected) in [
        ("Named", "1 > named"),
        ("Bytes", "2 > bytes"),
        ("func", "3 > func"),
        ("delegate", "4 > delegate"),
    ] {
        assert_eq!(f.references(name), [expected]);
    }
}

#[test]
fn bounds_are_asked_of_types_whose_arguments_are_not_known() {
    let f = Fixture::new(
        "//- src/lib.rs
trait Walker { fn /*iter*/iter(self) -> u8 where Self: Sized { 0 } }
impl<W> Walker for &mut W where W: Walker {}
struct A;
impl Walker for A {}
fn all(mut a: A) { let list = outside::list(); let v = vec![list]; v.iter(); [].iter(); (&mut a)./*1*/iter(); }
",
    );
    assert_eq!(f.references("iter"), ["1 > iter"]);
}

#[test]
fn iterators_that_are_copied_give_what_was_referred_to() {
    let f = Fixture::new(
        "//- src/lib.rs
struct U;
impl U { fn /*m*/m(&self) {} }
fn a<'a, T>(iter: T) where T: IntoIterator<Item = &'a U> {
    for x in iter { x./*0*/m(); }
    for x in iter.into_iter() { x./*1*/m(); }
    iter.into_iter().next().unwrap()./*3*/m();
    for y in iter.into_iter().copied() { y./*2*/m(); }
    let z = iter.into_iter().copied();
    for w in z.into_iter() { w./*4*/m(); }
}
fn b(v: Vec<U>) { for y in v.iter().copied() { y./*5*/m(); } for w in v.iter().copied().into_iter() { w./*6*/m(); } }
",
    );
    for (mark, item) in f.items(FindMode::References, "m") {
        assert_eq!(item.confidence, Some(Confidence::Exact), "{mark}");
    }
    assert_eq!(f.references("m").len(), 7);
}
