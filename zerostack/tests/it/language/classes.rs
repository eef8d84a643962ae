//! Classes.

use super::table;

#[test]
fn classes() {
    table(&[
        (
            "class A { x = 1; static y = 2; #z = 3; z() { return this.#z } static { A.w = this.y + 1 } } const a = new A(); return [a.x, A.y, a.z(), A.w]",
            "[1,2,3,3]",
        ),
        (
            "class A { constructor() { this.n = new.target.name } } class B extends A {} return new B().n",
            "\"B\"",
        ),
        (
            "class A { get x() { return 1 } } class B extends A { get x() { return super.x + 1 } } return new B().x",
            "2",
        ),
        (
            "class A { static m() { return 's' } } class B extends A { static m() { return super.m() + '2' } } return B.m()",
            "\"s2\"",
        ),
        (
            "class A { #p; static has(o) { return #p in o } } return [A.has(new A()), A.has({})]",
            "[true,false]",
        ),
        (
            "class A { #m() { return 1 } get #g() { return this.#m() } v() { return this.#g } } return new A().v()",
            "1",
        ),
        (
            "try { class A { #p = 1; static get(o) { return o.#p } } A.get({}) } catch (e) { return e.name }",
            "\"TypeError\"",
        ),
        (
            "try { class A extends Object { constructor() { this.x = 1 } } new A() } catch (e) { return e.name }",
            "\"ReferenceError\"",
        ),
        ("try { (class A {})() } catch (e) { return e.name }", "\"TypeError\""),
        (
            "class A extends Array { sum() { return this.reduce((a, b) => a + b, 0) } } const a = A.from([1, 2, 3]); return [a.sum(), a.map((x) => x * 2) instanceof A, a.length]",
            "[6,true,3]",
        ),
        (
            "class E extends Error { constructor(m) { super(m, {cause: 'c'}); this.name = 'E' } } const e = new E('m'); return [e instanceof Error, String(e), e.cause]",
            "[true,\"E: m\",\"c\"]",
        ),
        (
            "const log = []; class A { [(log.push('key'), 'a')] = log.push('field'); constructor() { log.push('ctor') } } new A(); return log",
            "[\"key\",\"field\",\"ctor\"]",
        ),
        (
            "class A { static #n = 0; static next() { return ++A.#n } } A.next(); return A.next()",
            "2",
        ),
        (
            "const M = (B) => class extends B { mixed() { return 'm' } }; class A extends M(Object) {} return new A().mixed()",
            "\"m\"",
        ),
        (
            "class A { async *g() { yield 1; yield 2 } } const r = []; for await (const x of new A().g()) r.push(x); return r",
            "[1,2]",
        ),
        (
            "class A { static [Symbol.hasInstance](x) { return x === 1 } } return [1 instanceof A, 2 instanceof A]",
            "[true,false]",
        ),
        (
            "class A { get [Symbol.toStringTag]() { return 'Tag' } } return String(new A())",
            "\"[object Tag]\"",
        ),
        (
            "class A { accessor = 1; static async = 2; get = 3; set = 4 } const a = new A(); return [a.accessor, A.async, a.get, a.set]",
            "[1,2,3,4]",
        ),
        (
            "return typeof class { 'constructor'() {} } === 'function' && Object.getOwnPropertyNames(class { static name = 'x' }).includes('name')",
            "true",
        ),
        (
            "try { new (class { constructor() { return 1 } })(); class B extends Object { constructor() { return 1 } } new B() } catch (e) { return e.name }",
            "\"TypeError\"",
        ),
    ]);
}
