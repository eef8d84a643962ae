//! Statements, operators, literals, strictness.

use super::{refused, table};

#[test]
fn statements_and_operators() {
    table(&[
        ("let s = 0; for (let i = 0, n = 3; i < n; i++) s += i; return s", "3"),
        (
            "outer: for (const a of [1, 2]) { for (const b of [1, 2]) { if (b === 2) continue outer; if (a === 2) break outer } } return 'done'",
            "\"done\"",
        ),
        (
            "switch (3) { case 1: return 'one'; default: return 'other'; case 2: return 'two' }",
            "\"other\"",
        ),
        (
            "let t = ''; switch (2) { case 1: t += 1; case 2: t += 2; case 3: t += 3; break; case 4: t += 4 } return t",
            "\"23\"",
        ),
        ("let n = 0; do { n++ } while (n < 5); return n", "5"),
        ("try { return 'try' } finally { var x = 1 }", "\"try\""),
        (
            "const f = () => { try { return 1 } finally { return 2 } }; return f()",
            "2",
        ),
        (
            "try { try { throw 1 } finally { throw 2 } } catch (e) { return e }",
            "2",
        ),
        ("try { null.x } catch { return 'caught' }", "\"caught\""),
        (
            "return [1 && 0, null ?? 5, 0 ?? 5, 0 || 5, undefined?.x, null?.[0], (void 0)?.()]",
            "[0,5,0,5,null,null,null]",
        ),
        (
            "let a = null, b = 0, c = 1; a ??= 1; b ||= 2; c &&= 3; return [a, b, c]",
            "[1,2,3]",
        ),
        (
            "return [2 ** 3 ** 2, (-2) ** 2, 7 % -3, -7 % 3, 1 / -0]",
            "[512,4,1,-1,null]",
        ),
        (
            "return [5 & 3, 5 | 3, 5 ^ 3, ~5, -1 >>> 28, 1 << 33, -8 >> 1]",
            "[1,7,6,-6,15,2,-4]",
        ),
        (
            "return ['1' + 2, '3' * '4', [] + {}, [] == false, null == 0, NaN === NaN, '2' > '12']",
            "[\"12\",12,\"[object Object]\",true,false,false,true]",
        ),
        (
            "return [typeof null, typeof undefinedName, typeof (() => 1), typeof 1n, typeof Symbol()]",
            "[\"object\",\"undefined\",\"function\",\"bigint\",\"symbol\"]",
        ),
        ("return (1, 2, 3)", "3"),
        ("return 0b101 + 0o17 + 0xff + 1_000 + .5 + 1e2", "1375.5"),
        ("return `a${1 + 1}b${`c${'d'}`}`", "\"a2bcd\""),
        ("return '\\x41\\u0042\\u{43}\\n'.length + '\\\n'", "\"4\""),
        (
            "const tag = (s, ...v) => [s.raw.join('|'), s.length, v]; return tag`a\\n${1}b${2}`",
            "[\"a\\\\n|b|\",3,[1,2]]",
        ),
        ("return (s => s[0] === undefined)`\\u`", "true"),
        ("a: { break a; } { } ; return 'blocks'", "\"blocks\""),
        ("const x = 1; { const x = 2 } return x", "1"),
        ("try { x; let x = 1 } catch (e) { return e.name }", "\"ReferenceError\""),
        (
            "var f = function () { return typeof this }; return f()",
            "\"undefined\"",
        ),
        ("return this === undefined", "true"),
        (
            "try { undeclared = 1 } catch (e) { return e.name }",
            "\"ReferenceError\"",
        ),
        (
            "try { Object.freeze([1]).push(2) } catch (e) { return e.name }",
            "\"TypeError\"",
        ),
        (
            "try { const c = 1; c = 2 } catch (e) { return e.name }",
            "\"TypeError\"",
        ),
        (
            "const a = 1\nconst b = 2\n;[a, b].forEach(() => {})\nreturn\n5",
            "undefined",
        ),
        ("let i = 1; const j = i\n++\ni; return [i, j]", "[2,1]"),
        (
            "return /[\\p{Lu}--[A-C]]/v.test('D') && !/[\\p{Lu}--[A-C]]/v.test('A')",
            "true",
        ),
        ("return 'x' in {x: undefined} && !('y' in {})", "true"),
        ("debugger; return 1", "1"),
        ("if (1) ; else return 2; return 3", "3"),
    ]);
}

#[test]
fn what_is_no_program_is_refused_before_anything_runs() {
    refused(&[
        "return (",
        "const a; return a",
        "let a; let a",
        "with ({}) {}",
        "delete name",
        "var eval = 1",
        "arguments = 1",
        "010",
        "'\\08'",
        "for (let x of [], []) ;",
        "break",
        "continue",
        "label: label: ;",
        "class A { constructor() {} constructor() {} }",
        "class A extends B { constructor() { super(); super.#x } }",
        "({a: 1, a}) = 1",
        "new.target = 1",
        "function f(a, a) {}",
        "(a, a) => 1",
        "function f(a = 1) { 'use strict' }",
        "yield 1",
        "let let = 1",
        "import.meta",
        "import x from 'y'",
        "export default 1",
        "a ?? b || c",
        "-1 ** 2",
        "if (1) function f() {}",
        "/(?<a>x)(?<a>y)/",
        "/[/",
        "`${`",
        "async () => { for await (x in y) ; }",
        "({get a(x) {}})",
        "super()",
        "class A { #a; #a }",
        "x?.y = 1",
        "'use strict'; interface = 1",
        "1++",
        "for (const x = 1 of []) ;",
        "try {}",
        "\\u{110000}",
        "const {a} ;",
        "function* g() { yield\n* 2 }",
        "return 1n + 01n",
        "async function f() { (await) => 1 }",
        "}); z.run('x'); (async () => {",
        "}, function () {",
        "}) + (function () {",
    ]);
}
