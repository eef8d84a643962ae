//! TypeScript cells: what is taken away, what becomes JavaScript, and where errors are told.

use serde_json::json;
use zero_contracts::ErrorKind;

use crate::frame_support::{cell, cell_within, error, failure, the_next_cell_is_normal, value};
use crate::nestings::{NESTINGS, TYPE_NESTINGS, nested};

#[test]
fn types_are_taken_away() {
    for (source, wanted) in [
        ("const a: number = 1; return a", json!(1)),
        ("let a!: number; a = 2; return a", json!(2)),
        (
            "const f = (a: string, b?: number): string => a + (b ?? ''); return f('x', 1)",
            json!("x1"),
        ),
        (
            "function f<T extends {a: number}>(x: T): T['a'] { return x.a } return f({a: 3})",
            json!(3),
        ),
        (
            "function f(this: {a: number}) { return this.a } return f.call({a: 4})",
            json!(4),
        ),
        (
            "interface A { readonly a: number; b?: string } const x: A = {a: 5}; return x",
            json!({"a": 5}),
        ),
        (
            "type A = {[K in 'a' | 'b']: K}; const x = {a: 'a', b: 'b'} satisfies A; return x.b",
            json!("b"),
        ),
        ("return ({a: 1} as {a: number} as any).a", json!(1)),
        ("return (<any>{a: 1}).a", json!(1)),
        ("const a: number[] | undefined = [7]; return a![0]!", json!(7)),
        ("const a = [1, 2] as const; return a.length", json!(2)),
        (
            "const identity = <T,>(x: T): T => x; return identity<number>(8)",
            json!(8),
        ),
        ("function id<T>(x: T) { return x } return id<string>('y')", json!("y")),
        ("return new Map<string, number>([['a', 1]]).get('a')", json!(1)),
        ("return [...new Set<number>([1, 1, 2])]", json!([1, 2])),
        (
            "function f(a: string): string; function f(a: number): number; function f(a: any) { return a } return f(9)",
            json!(9),
        ),
        (
            "declare const missing: number; declare function gone(): void; return typeof missing",
            json!("undefined"),
        ),
        (
            "abstract class A { abstract f(): number; g() { return this.f() } } class B extends A { f() { return 1 } } return new B().g()",
            json!(1),
        ),
        (
            "class A implements Iterable<number> { *[Symbol.iterator](): Generator<number> { yield 1 } } return [...new A()]",
            json!([1]),
        ),
        (
            "class A { private a: number = 1; protected static b = 2; readonly c; declare d: string; constructor() { this.c = this.a + A.b } } return Object.keys(new A())",
            json!(["a", "c"]),
        ),
        (
            "class A { #x: number = 1; get x(): number { return this.#x } set x(v: number) { this.#x = v } } const a = new A(); a.x = 5; return a.x",
            json!(5),
        ),
        (
            "class A<T> { constructor(public a: T, private readonly b = 2) {} sum() { return [this.a, this.b] } } return new A<number>(1).sum()",
            json!([1, 2]),
        ),
        (
            "try { throw new Error('x') } catch (e: unknown) { return (e as Error).message }",
            json!("x"),
        ),
        (
            "const [a, {b}]: [number, {b: string}] = [1, {b: 'c'}]; return [a, b]",
            json!([1, "c"]),
        ),
        (
            "const f = async (x: string): Promise<string> => (await z.read(x)).name; return await f('a')",
            json!("read"),
        ),
        ("for (const x of [1, 2] as number[]) { if (x > 1) return x }", json!(2)),
        ("import type { A } from './a'; type B = A; return 1", json!(1)),
        ("export interface A { a: number } return 1", json!(1)),
        ("let x: typeof input; return typeof z.read as string", json!("function")),
        (
            "const isString = (x: unknown): x is string => typeof x === 'string'; return isString('a')",
            json!(true),
        ),
        (
            "type F = (a: number, ...rest: string[]) => asserts a; return 1",
            json!(1),
        ),
        ("label: for (const i of [1] as any) { break label } return 2", json!(2)),
        (
            "const a = 1 as number, b = 2; return a < b && b > (a as number)",
            json!(true),
        ),
    ] {
        assert_eq!(value(source), wanted, "{source}");
    }
}

#[test]
fn enums_and_namespaces_become_values() {
    for (source, wanted) in [
        (
            "enum A { X, Y = 5, Z } return [A.X, A.Y, A.Z, A[6]]",
            json!([0, 5, 6, "Z"]),
        ),
        (
            "enum A { X = 'x', Y = `y` } return [A.X, A.Y, Object.keys(A)]",
            json!(["x", "y", ["X", "Y"]]),
        ),
        (
            "enum A { X = 1 << 2, Y = X | 1, L = 'abc'.length } return [A.X, A.Y, A.L]",
            json!([4, 5, 3]),
        ),
        ("const enum A { X = 3 } return A.X + 1", json!(4)),
        ("enum A { X } enum A { Y = 1 } return [A.X, A.Y]", json!([0, 1])),
        ("function f() { enum A { X = 2 } return A.X } return f()", json!(2)),
        (
            "namespace N { export const a = 1; export function f() { return a + 1 } const hidden = 3 } return [N.a, N.f(), Object.keys(N)]",
            json!([1, 2, ["a", "f"]]),
        ),
        ("namespace N.M { export const a = 2 } return N.M.a", json!(2)),
        (
            "namespace N { export namespace M { export class C { v = 4 } } } return new N.M.C().v",
            json!(4),
        ),
        ("namespace N { export enum E { A = 7 } } return N.E.A", json!(7)),
        (
            "function f() { return 1 } namespace f { export const more = 2 } return [f(), f.more]",
            json!([1, 2]),
        ),
        (
            "namespace Types { export type A = string; export interface B {} } const a: Types.A = 'x'; return a",
            json!("x"),
        ),
        (
            "namespace N { export async function f(p: string) { return (await z.read(p)).arguments } } return await N.f('q')",
            json!(["q"]),
        ),
    ] {
        assert_eq!(value(source), wanted, "{source}");
    }
}

/// They could be read and written behind the namespace's back.
#[test]
fn what_cannot_be_made_faithfully_is_refused() {
    let (kind, at, detail) = failure("namespace N {\n export let a = 1; a++ }\nreturn N.a");
    assert_eq!((kind, at), (ErrorKind::Syntax, Some((2, 13))), "{detail}");
}

#[test]
fn what_is_javascript_runs_as_javascript() {
    for (source, wanted) in [
        ("const a = 1, b = 2; return a < b", json!(true)),
        (
            "const type = 1, as = 2, namespace = 3, declare = 4; return type + as + namespace + declare",
            json!(10),
        ),
        (
            "const a = 1, b = 2, c = 0; return [a < b, c > (a)]",
            json!([true, false]),
        ),
        ("return /<a>(b)/.test('<a>b')", json!(true)),
        ("return '<T>(x)' + `<${1}>`", json!("<T>(x)<1>")),
    ] {
        assert_eq!(value(source), wanted, "{source}");
    }
    // JavaScript would compare with what is not there.
    assert_eq!(value("const f = (x) => x; return f<string>(5)"), json!(5));
}

#[test]
fn errors_are_told_in_the_authors_place() {
    // Thrown: the generated text has neither the interface nor the types.
    for (source, place, text) in [
        (
            "interface A {\n  a: number\n}\nconst x: A = {a: 1};\nthrow   new Error('here')",
            (5, 9),
            "Error: here",
        ),
        (
            "enum E { A }\ntype T = {\n a: 1 };\n\nconst f = (x: T): never => {\n    throw new TypeError('in f')\n};\nf({a: 1})",
            (6, 11),
            "TypeError: in f",
        ),
        (
            "const x: any = null;\n\n   x.field",
            (3, 6),
            "TypeError: Cannot read properties of null (reading 'field')",
        ),
        (
            "class A {\n  constructor(private a: number) {}\n  f(): void { undefinedName }\n}\nnew A(1).f()",
            (3, 15),
            "ReferenceError: undefinedName is not defined",
        ),
        ("const 😀x = 1", (1, 7), ""),
        (
            "const s: string = '😀';  throw new Error('after 😀')",
            (1, 31),
            "Error: after 😀",
        ),
    ] {
        let (kind, at, detail) = failure(source);
        assert_eq!(at, Some(place), "{source}: {kind:?} {detail}");
        assert!(detail.starts_with(text), "{detail}");
    }
    // Syntax: of the language that got further.
    for (source, place) in [
        ("const a: number = 1;\nconst b: = 2;", (2, 10)),
        ("interface A { a: number }\nreturn 1 +;", (2, 11)),
        ("const a = 1;\nconst b = (2;", (2, 13)),
        ("enum A { X }\nenum B { Y ", (2, 12)),
        ("const x: number = 1;\nconst x: number = 2;", (1, 7)),
        ("type A = 1;\nimport fs from 'fs'; return fs", (2, 1)),
        ("type A = 1;\nexport const x = 1", (2, 1)),
        ("const a: number = 1; }); f(); (async () => {", (1, 22)),
        ("let a: number; delete a", (1, 23)),
    ] {
        let (kind, at, detail) = failure(source);
        assert_eq!((kind, at), (ErrorKind::Syntax, Some(place)), "{source}: {detail}");
    }
    assert!(error("type A = 1; export const x = 1").detail.contains("no exports"));
}

#[test]
fn stacks_show_the_authors_lines() {
    let source = "
interface Unused { a: number }

function inner(x: number): never {
    throw new Error('deep ' + x);
}
const outer = (x: number) => inner(x);
try { outer(1) } catch (e: any) { return e.stack.split('\\n') }";
    let stack = value(source);
    assert_eq!(stack[0], "Error: deep 1");
    assert_eq!(stack[1], "    at inner (cell:5:11)");
    assert_eq!(stack[2], "    at outer (cell:7:30)");
    assert_eq!(stack[3], "    at cell:8:7");
}

#[test]
fn a_stop_comes_through_while_a_cell_is_parsed() {
    let source = format!("const a: number = 1; return [{}]", "[1, 2, {a: 1}], ".repeat(12_000));
    assert!(cell(&source).settled.is_ok());
}

/// Runs every form nested in itself over `bytes` bytes, as JavaScript and as TypeScript.
fn nest(bytes: usize, wall_ms: u64) {
    let typescript = "let typed: number = 1; ";
    let forms = NESTINGS
        .iter()
        .flat_map(|form| [(form, ""), (form, typescript)])
        .chain(TYPE_NESTINGS.iter().map(|form| (form, "type T=")));
    for (form, before) in forms {
        let start = std::time::Instant::now();
        // Functions nested in themselves end at the stack, loops at the deadline; nothing may end the process.
        let outcome = cell_within(&nested(*form, before, bytes - before.len()), wall_ms);
        assert!(!outcome.given_up, "{before}{form:?}");
        if let Err(error) = outcome.settled {
            let expected = [
                ErrorKind::Syntax,
                ErrorKind::Exception,
                ErrorKind::Deadline,
                ErrorKind::Budget,
            ];
            assert!(expected.contains(&error.kind), "{before}{form:?}: {error:?}");
        }
        if start.elapsed().as_secs() > 4 {
            println!("{:?} {before}{form:?}", start.elapsed());
        }
    }
    the_next_cell_is_normal();
}

#[test]
fn deep_nesting_of_every_form_is_syntax_or_runs() {
    nest(6 << 10, 300);
}

/// `cargo xtask soak cell`.
#[test]
#[ignore = "minutes long"]
fn the_deepest_nesting_of_every_form_is_syntax_or_runs() {
    nest(256 << 10, 3_000);
}
