//! Objects, properties, prototypes, proxies, symbols.

use super::table;

#[test]
fn objects_and_properties() {
    table(&[
        (
            "return Object.keys({b: 1, 2: 1, a: 1, 1: 1})",
            "[\"1\",\"2\",\"b\",\"a\"]",
        ),
        (
            "const k = 'x'; return {[k]: 1, [`${k}2`]() { return 1 }, get y() { return 2 }}.y",
            "2",
        ),
        (
            "return {...{a: 1, b: 2}, b: 3, ...null, ...'hi', ...[9]}",
            "{\"0\":9,\"1\":\"i\",\"a\":1,\"b\":3}",
        ),
        (
            "const o = Object.defineProperty({}, 'x', {value: 1}); return [Object.keys(o), o.x, delete {}.y]",
            "[[],1,true]",
        ),
        (
            "try { Object.defineProperty({}, 'x', {value: 1}).x = 2 } catch (e) { return e.name }",
            "\"TypeError\"",
        ),
        (
            "const o = {__proto__: {a: 1}, b: 2}; return [o.a, Object.hasOwn(o, 'a'), JSON.stringify(o)]",
            "[1,false,\"{\\\"b\\\":2}\"]",
        ),
        (
            "return Object.entries(Object.fromEntries([['a', 1], ['b', 2]]))",
            "[[\"a\",1],[\"b\",2]]",
        ),
        (
            "return Object.groupBy([1, 2, 3], (x) => x % 2 ? 'odd' : 'even')",
            "{\"odd\":[1,3],\"even\":[2]}",
        ),
        ("return Object.is(-0, 0) || !Object.is(NaN, NaN)", "false"),
        (
            "const s = Symbol('d'); const o = {[s]: 1, a: 2}; return [Object.keys(o), o[s], s.description, Symbol.for('x') === Symbol.for('x')]",
            "[[\"a\"],1,\"d\",true]",
        ),
        (
            "const o = {a: {b: 1}}; const c = structuredClone(o); c.a.b = 2; return [o.a.b, c.a.b]",
            "[1,2]",
        ),
        (
            "return {toString() { return 'T' }} + '' + {valueOf() { return 4 }} * 2",
            "\"T8\"",
        ),
        (
            "return `${{[Symbol.toPrimitive]: (hint) => hint}}` + (+{[Symbol.toPrimitive]: (h) => h === 'number' ? 1 : 0})",
            "\"string1\"",
        ),
        (
            "const o = {get a() { return this.b }, b: 3}; return Reflect.get(o, 'a', {b: 5})",
            "5",
        ),
        (
            "const o = Object.create(null); o.x = 1; return ['toString' in o, Object.getPrototypeOf(o)]",
            "[false,null]",
        ),
        ("return Object.getOwnPropertyNames('ab')", "[\"0\",\"1\",\"length\"]"),
        (
            "const o = Object.freeze({a: {b: 1}}); o.a.b = 2; return [o.a.b, Object.isFrozen(o), Object.isSealed(o)]",
            "[2,true,true]",
        ),
        (
            "const w = new WeakMap(), k = {}; w.set(k, 1); return [w.get(k), w.has({}), new WeakRef(k).deref() === k]",
            "[1,false,true]",
        ),
    ]);
}

#[test]
fn proxies_and_reflection() {
    table(&[
        (
            "const log = []; const p = new Proxy({a: 1}, {get(t, k) { log.push(k); return t[k] }}); return [p.a, p.b, log]",
            "[1,null,[\"a\",\"b\"]]",
        ),
        (
            "const p = new Proxy({}, {has: () => true}); return ['anything' in p, Reflect.has(p, 'x')]",
            "[true,true]",
        ),
        (
            "const p = new Proxy({}, {ownKeys: () => ['a', 'b'], getOwnPropertyDescriptor: () => ({enumerable: true, configurable: true, value: 1})}); return Object.keys(p)",
            "[\"a\",\"b\"]",
        ),
        (
            "const p = new Proxy(function () {}, {apply: (t, self, args) => args.length, construct: (t, args) => ({n: args.length})}); return [p(1, 2), new p(1).n]",
            "[2,1]",
        ),
        (
            "try { new Proxy(Object.freeze({a: 1}), {get: () => 2}).a } catch (e) { return e.name }",
            "\"TypeError\"",
        ),
        (
            "const {proxy, revoke} = Proxy.revocable({}, {}); revoke(); try { proxy.x } catch (e) { return e.name }",
            "\"TypeError\"",
        ),
        (
            "try { new Proxy({}, {set: () => false}).x = 1 } catch (e) { return e.name }",
            "\"TypeError\"",
        ),
        (
            "return [Reflect.ownKeys({a: 1, [Symbol('s')]: 2}).length, Reflect.set({}, 'x', 1), Reflect.defineProperty(Object.freeze({}), 'x', {value: 1})]",
            "[2,true,false]",
        ),
        (
            "class A { constructor() { this.t = new.target } } class B {} return Reflect.construct(A, [], B).t === B",
            "true",
        ),
        (
            "const p = new Proxy([], {}); return [Array.isArray(p), JSON.stringify(new Proxy([1, 2], {}))]",
            "[true,\"[1,2]\"]",
        ),
        (
            "return Reflect.getPrototypeOf(new Proxy({}, {getPrototypeOf: () => Array.prototype})) === Array.prototype",
            "true",
        ),
    ]);
}
