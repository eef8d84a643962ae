//! TypeScript and Python.

use zero_contracts::find::FindMode;

use crate::fixtures::Fixture;

#[test]
fn typescript_modules_classes_and_types() {
    let f = Fixture::new(
        "//- src/base.ts
export class /*Base*/Base { /*hello*/hello(): string { return 'x' } }
export interface /*Opts*/Opts { size: number }
export default function /*make*/make(o: /*1*/Opts): Base { return new /*2*/Base() }
//- src/index.ts
export * from './base'
export { Base as Root } from './base'
//- src/app.ts
import build, { Base } from './base'
import * as all from './index'
class Child extends /*3*/Base { run() { return this./*4*/hello() } }
const made = build({ size: 1 })
made./*5*/hello()
new all./*6*/Base()./*7*/hello()
",
    );
    let hello = f.references("hello");
    assert_eq!(hello, ["4 > hello", "5 > hello", "7 > hello"]);
    let base = f.references("Base");
    for use_ in ["2", "3", "6"] {
        assert!(base.contains(&format!("{use_} > Base")), "{use_} in {base:?}");
    }
    assert!(f.references("Opts").contains(&"1 > Opts".to_owned()));
    assert_eq!(f.callers("make").len(), 1);
}

#[test]
fn python_packages_classes_and_self() {
    let f = Fixture::new(
        "//- pkg/__init__.py
from .core import Tool as Tool
//- pkg/core.py
from . import util
class Base:
    def /*run*/run(self): return util./*1*/helper()
class Tool(Base):
    def __init__(self, other: 'Base'):
        self.other = other
    def go(self):
        self./*2*/run()
        self.other./*3*/run()
        super()./*4*/run()
def make() -> Tool:
    return Tool(None)
//- pkg/util.py
def /*helper*/helper(): pass
//- main.py
import pkg.core
from pkg import Tool
pkg.core.make()./*5*/run()
for t in [Tool(None)]:
    t./*6*/run()
",
    );
    assert_eq!(f.references("helper"), ["1 > helper"]);
    let run = f.references("run");
    for use_ in ["2", "3", "4", "5", "6"] {
        assert!(run.contains(&format!("{use_} > run")), "{use_} in {run:?}");
    }
    let importers = f.ask(FindMode::Importers, "pkg/util.py");
    assert_eq!(importers.items[0].path, "pkg/core.py");
}

#[test]
fn typescript_declarations_under_one_name_are_one_symbol() {
    let f = Fixture::new(
        "//- src/a.ts
export const /*value*/Kind = { a: 'a' } as const
export type /*type*/Kind = keyof typeof /*1*/Kind
export function /*first*/pick(x: string): string
export function /*second*/pick(x: number): number
export function /*body*/pick(x: any): any { return x }
//- src/b.ts
import { Kind, pick } from './a'
const x: /*2*/Kind = 'a'
/*3*/pick(1)
",
    );
    let sites = |query: &str, at: &str| {
        let found = f.all_targets(query);
        found
            .into_iter()
            .filter(|t| t.starts_with(&format!("{at} > ")))
            .collect::<Vec<_>>()
    };
    assert_eq!(sites("Kind", "1"), ["1 > value", "1 > type"]);
    assert_eq!(sites("Kind", "2"), ["2 > value", "2 > type"]);
    assert_eq!(sites("pick", "3"), ["3 > first", "3 > second", "3 > body"]);
}

#[test]
fn typescript_type_parameters_are_followed() {
    let f = Fixture::new(
        "//- src/a.ts
interface Box<T, R = T> { /*inner*/inner: T; other: R; /*self*/self(): this; map<U>(f: (x: T) => U): Box<U> }
interface Leaf { /*leaf*/leaf: string }
interface Named extends Box<Leaf> { /*own*/own: number }
type Pair<A, B> = { /*left*/left: A; right: B }
type Loose<T> = { [K in keyof T]?: T[K] }
declare function wrap<T>(value: T): Box<T>
declare function build<T>(name: string, init: (it: T) => void): Box<T>
function run(n: Named, p: Pair<Leaf, Named>, l: Loose<Leaf>) {
  n.inner./*1*/leaf
  n.other./*2*/leaf
  n./*3*/self()./*4*/own
  p./*5*/left./*6*/leaf
  p.right./*7*/own
  l./*8*/leaf
  wrap(p.right).inner./*9*/own
  n.map(x => { x./*10*/leaf; return p }).inner./*11*/left
}
const made: Box<Leaf> = build('n', it => { it./*12*/leaf })
type Part = Pair<Leaf, 1>['left']
function more(p: Part, all: Leaf[]) {
  p./*13*/leaf
  all.filter(x => x./*14*/leaf).forEach(x => x./*15*/leaf)
  all.find(x => x.leaf)./*16*/leaf
}
",
    );
    let uses = |query: &str| {
        let found = f.references(query).into_iter();
        found
            .filter_map(|r| r.split(' ').next()?.parse::<u32>().ok())
            .collect::<Vec<_>>()
    };
    assert_eq!(uses("Leaf.leaf"), [1, 2, 6, 8, 10, 12, 13, 14, 15, 16]);
    assert_eq!(uses("Named.own"), [4, 7, 9]);
    assert_eq!(uses("left"), [5, 11]);
    assert_eq!(uses("self"), [3]);
}

#[test]
fn typescript_places_expect_types_and_conditions_narrow() {
    let f = Fixture::new(
        "//- src/a.ts
interface Opts { /*size*/size: number; done?: (r: Result) => void }
interface Result { /*text*/text: string }
type Shape = { /*k1*/kind: 'circle'; /*radius*/radius: number } | { /*k2*/kind: 'square'; /*side*/side: number }
class Plain { /*plain*/plain = 1 }
declare function isResult(x: unknown): x is Result
function start(o: Opts): Opts { return { /*1*/size: 1, done: r => r./*2*/text } }
start({ /*3*/size: 2 })
const o: Opts = { /*4*/size: 3 }
function area(s: Shape, x: unknown) {
  if (s.kind === 'circle') { s./*5*/radius } else { s./*6*/side }
  switch (s.kind) { case 'square': s./*7*/side; break }
  if (isResult(x)) x./*8*/text
  if (x instanceof Plain) x./*9*/plain
  if (s.kind === 'circle') return s.radius
  return s./*10*/side
}
",
    );
    let uses = |query: &str| {
        let found = f.references(query).into_iter();
        found
            .filter_map(|r| r.split(' ').next()?.parse::<u32>().ok())
            .collect::<Vec<_>>()
    };
    assert_eq!(uses("size"), [1, 3, 4]);
    assert_eq!(uses("text"), [2, 8]);
    assert_eq!(uses("radius")[..1], [5]);
    assert_eq!(uses("side"), [6, 7, 10]);
    assert_eq!(uses("plain"), [9]);
}

#[test]
fn typescript_signatures_need_no_semicolons() {
    let f = Fixture::new(
        "//- src/a.ts
export interface Make {
  <A>(a: A): A

  <B extends Made>(b: B): Made<
    B
  >
}
export interface /*made*/Made<T = 1> {}
",
    );
    assert_eq!(f.definitions("Made"), ["made"]);
    assert!(f.ask(FindMode::Definitions, "Made").coverage.skipped.is_empty());
}

#[test]
fn python_sites_of_one_symbol() {
    let f = Fixture::new(
        "//- a.py
from typing import overload
@overload
def /*first*/load(x: int) -> int: ...
@overload
def /*second*/load(x: str) -> str: ...
def /*body*/load(x): return x
/*1*/load(1)
flag = False
if /*2*/flag:
    /*3*/flag = True
def change():
    global flag
    /*4*/flag = None
",
    );
    assert_eq!(f.definitions("load"), ["first", "second", "body"]);
    assert_eq!(f.references("load"), ["second > first", "body > first", "1 > first"]);
    let listed = f.ask(FindMode::Symbols, "load").items.len();
    assert_eq!(listed, 1);
    let flag: Vec<String> = f.references("flag").iter().map(|r| r[..1].to_owned()).collect();
    assert_eq!(flag, ["2", "3", "4"]);
}

#[test]
fn python_annotations_in_quotes_are_code() {
    let f = Fixture::new(
        "//- a.py
import typing as t
class /*Tree*/Tree:
    def /*walk*/walk(self): pass
def run(a: 't.Optional[/*1*/Tree]', b: 't.Callable[[/*2*/Tree], int]') -> '/*3*/Tree':
    a./*4*/walk()
    return a
run(None, None)./*5*/walk()
",
    );
    assert_eq!(f.references("Tree"), ["1 > Tree", "2 > Tree", "3 > Tree"]);
    assert_eq!(f.references("walk"), ["4 > walk", "5 > walk"]);
}

#[test]
fn what_is_said_to_be_anything_has_no_members() {
    let f = Fixture::new(
        "//- src/a.ts
interface A { /*size*/size: number; /*next*/next: A }
interface B { size: string; next: B }
declare function make(): A;
const all = (a: A) => {
  (a as any).size; (<any>a).size; (a as unknown).size;
  const x: any = make(); x.size;
  const y: unknown = a; y.size;
  (a as any as A)./*1*/size; (a satisfies A)./*2*/size; (a as const)./*3*/size;
  (make() satisfies any)./*4*/next./*5*/size;
};
",
    );
    assert_eq!(f.references("A.size"), ["1 > size", "2 > size", "3 > size", "5 > size"]);
    assert_eq!(f.references("A.next"), ["4 > next"]);
}

#[test]
fn code_outside_of_definitions_depends_too() {
    let f = Fixture::new(
        "//- lib.js
function leaf() { return 1 }
function middle() { return leaf() }
module.exports = function (x) { return x ? middle() : leaf() }
leaf()
//- lonely.js
function only() { return 1 }
module.exports = (x) => only(x)
//- tool.py
def used(): return 1
def unused(): return 2
if __name__ == '__main__':
    used()
",
    );
    let impact = |query: &str| -> Vec<(String, Vec<String>)> {
        let items = f.ask(FindMode::Impact, query).items;
        let told =
            |item: zero_contracts::find::FindItem| (format!("{}:{}", item.path, item.range.start.line), item.via);
        items.into_iter().map(told).collect()
    };
    let told = |at: &str, via: &[&str]| {
        (
            at.to_owned(),
            via.iter().map(|&step| step.to_owned()).collect::<Vec<_>>(),
        )
    };
    // One item a file, however often it uses it, and with the shortest chain.
    assert_eq!(
        impact("leaf"),
        [told("lib.js:2", &["lib.leaf"]), told("lib.js:3", &["lib.leaf"])]
    );
    assert_eq!(impact("middle"), [told("lib.js:3", &["lib.middle"])]);
    assert_eq!(impact("only"), [told("lonely.js:2", &["lonely.only"])]);
    assert_eq!(impact("used"), [told("tool.py:4", &["tool.used"])]);
    assert_eq!(impact("unused"), []);
    // What has a caller has an impact.
    for name in ["leaf", "middle", "only", "used", "unused"] {
        let (callers, impact) = (f.ask(FindMode::Callers, name), f.ask(FindMode::Impact, name));
        assert_eq!(
            (callers.total == 0, callers.absence),
            (impact.total == 0, impact.absence),
            "{name}"
        );
    }
}
