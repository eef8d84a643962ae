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
