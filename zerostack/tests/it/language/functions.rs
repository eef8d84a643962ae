//! Functions, closures, parameters, destructuring.

use super::table;

#[test]
fn functions_and_parameters() {
    table(&[
        (
            "const fs = []; for (let i = 0; i < 3; i++) fs.push(() => i); return fs.map((f) => f())",
            "[0,1,2]",
        ),
        ("return (function () { return arguments.length })(1, 2, 3)", "3"),
        ("function f(a) { arguments[0] = 9; return a } return f(1)", "1"),
        (
            "const f = (a, b = a + 1, ...c) => [a, b, c]; return [f(1), f(1, undefined, 3), f(1, null)]",
            "[[1,2,[]],[1,2,[3]],[1,null,[]]]",
        ),
        (
            "return [((a, b = 1, c) => 1).length, ((...a) => 1).length, (function f() {}).name, (() => {}).name]",
            "[1,0,\"f\",\"\"]",
        ),
        ("return f(); function f() { return 'hoisted' }", "\"hoisted\""),
        ("return typeof g; var g = 1", "\"undefined\""),
        ("const o = {f() { return (() => this.x)() }, x: 1}; return o.f()", "1"),
        (
            "const f = function g(n) { return n ? n * g(n - 1) : 1 }; return f(5)",
            "120",
        ),
        ("return (function () { return this.x }).bind({x: 1}).call({x: 2})", "1"),
        ("return Math.max.apply(null, [1, 5, 3]) + Math.max(...[1, 2], 9)", "14"),
        (
            "function F() { return new.target === F } return [F(), new (function () { this.a = new.target !== undefined })().a]",
            "[false,true]",
        ),
        ("let n = 0; const f = (x = n++) => x; f(); f(); return n", "2"),
        (
            "const f = (a = b, b = 1) => a; try { f() } catch (e) { return e.name }",
            "\"ReferenceError\"",
        ),
        ("try { (() => {}).caller } catch (e) { return e.name }", "\"TypeError\""),
        ("return ((a) => (b) => (c) => a + b + c)(1)(2)(3)", "6"),
        (
            "try { Function('return 1')() } catch (e) { return e.name }",
            "\"EvalError\"",
        ),
        ("try { eval('1') } catch (e) { return e.name }", "\"EvalError\""),
        (
            "try { (async () => {}).constructor('return 1') } catch (e) { return e.name }",
            "\"EvalError\"",
        ),
        (
            "const f = () => f(); try { f() } catch (e) { return e.name }",
            "\"RangeError\"",
        ),
    ]);
}

#[test]
fn destructuring() {
    table(&[
        (
            "const [a, , b = 3, ...c] = [1, 2, undefined, 4, 5]; return [a, b, c]",
            "[1,3,[4,5]]",
        ),
        (
            "const {a, b: {c = 2} = {}, ...d} = {a: 1, e: 5, f: 6}; return [a, c, d]",
            "[1,2,{\"e\":5,\"f\":6}]",
        ),
        ("let a = 1, b = 2; [a, b] = [b, a]; return [a, b]", "[2,1]"),
        (
            "const o = {}; ({x: o.y, z: o['w']} = {x: 1, z: 2}); return o",
            "{\"y\":1,\"w\":2}",
        ),
        (
            "const k = 'q'; const {[k]: v, [`${k}2`]: w = 4} = {q: 3}; return [v, w]",
            "[3,4]",
        ),
        ("try { const {a} = null } catch (e) { return e.name }", "\"TypeError\""),
        ("try { const [a] = {} } catch (e) { return e.name }", "\"TypeError\""),
        (
            "const log = []; const {[(log.push('k'), 'a')]: x = log.push('d')} = {get a() { log.push('g') }}; return log",
            "[\"k\",\"g\",\"d\"]",
        ),
        (
            "const f = ({a = 1, b} = {}, [c] = [3]) => [a, b, c]; return [f(), f({b: 2}, [4])]",
            "[[1,null,3],[1,2,4]]",
        ),
        (
            "let closed = false; const it = {[Symbol.iterator]: () => ({next: () => ({value: 1}), return() { closed = true; return {} }})}; const [a] = it; return [a, closed]",
            "[1,true]",
        ),
        ("for (const [k, {v}] of [['a', {v: 1}]]) return k + v", "\"a1\""),
        ("try { throw {code: 7} } catch ({code}) { return code }", "7"),
    ]);
}
