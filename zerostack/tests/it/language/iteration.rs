//! Iterators, generators, and what walks them.

use super::table;

#[test]
fn iterators_and_generators() {
    table(&[
        (
            "function* g() { const x = yield 1; yield x * 2; return 3 } const i = g(); return [i.next(), i.next(5), i.next(), i.next()]",
            "[{\"value\":1,\"done\":false},{\"value\":10,\"done\":false},{\"value\":3,\"done\":true},{\"done\":true}]",
        ),
        (
            "function* g() { yield* [1, 2]; return yield* h() } function* h() { yield 3; return 4 } const i = g(); const r = [...i]; return r",
            "[1,2,3]",
        ),
        (
            "function* g() { try { yield 1 } finally { yield 'cleanup' } } const i = g(); i.next(); return [i.return(9), i.next()]",
            "[{\"value\":\"cleanup\",\"done\":false},{\"value\":9,\"done\":true}]",
        ),
        (
            "function* g() { try { yield 1 } catch (e) { yield 'c' + e } } const i = g(); i.next(); return i.throw(2).value",
            "\"c2\"",
        ),
        (
            "const it = {from: 1, *[Symbol.iterator]() { for (let i = this.from; i < 4; i++) yield i } }; return [...it, Math.max(...it)]",
            "[1,2,3,3]",
        ),
        (
            "let closed = 0; const it = {[Symbol.iterator]: () => ({next: () => ({value: 1, done: false}), return() { closed++; return {} }})}; for (const x of it) break; return closed",
            "1",
        ),
        (
            "let closed = 0; const it = {[Symbol.iterator]: () => ({next: () => ({value: 1, done: false}), return() { closed++; return {} }})}; try { for (const x of it) throw 1 } catch {} return closed",
            "1",
        ),
        (
            "const r = []; for (const k in {a: 1, __proto__: {b: 2}}) r.push(k); return r",
            "[\"a\",\"b\"]",
        ),
        (
            "return [...new Map([['a', 1]]).entries(), ...new Set('aab'), ...'é😀']",
            "[[\"a\",1],\"a\",\"b\",\"é\",\"😀\"]",
        ),
        ("return Array.from({length: 3}, (_, i) => i * i)", "[0,1,4]"),
        (
            "function* n() { let i = 0; while (true) yield i++ } return n().filter((x) => x % 2).map((x) => x * 10).drop(1).take(2).toArray()",
            "[30,50]",
        ),
        (
            "return [Iterator.from({next() { return {done: true} }}).toArray(), [1, 2].values().some((x) => x > 1)]",
            "[[],true]",
        ),
        (
            "const r = []; for await (const x of [Promise.resolve(1), 2]) r.push(x); return r",
            "[1,2]",
        ),
        (
            "async function* g() { yield 1; await null; yield 2 } const r = []; for await (const x of g()) r.push(x); return r",
            "[1,2]",
        ),
        (
            "const m = new Map(); m.set(NaN, 1).set(-0, 2); return [m.get(NaN), m.get(0), Object.is([...m.keys()][1], 0)]",
            "[1,2,true]",
        ),
        (
            "return [new Set([1, 2]).union(new Set([2, 3])).size, [...new Set([1, 2]).intersection(new Set([2]))]]",
            "[3,[2]]",
        ),
        (
            "const [a, ...b] = (function* () { yield 1; yield 2 })(); return [a, b]",
            "[1,[2]]",
        ),
        ("try { [...1] } catch (e) { return e.name }", "\"TypeError\""),
        (
            "try { const g = (function* () { g.next() })(); g.next() } catch (e) { return e.name }",
            "\"TypeError\"",
        ),
    ]);
}
