//! What is reachable from a cell, and what tampering with it can do.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use zero_contracts::{CancelToken, ErrorKind};
use zerostack::frame::run;

use crate::frame_support::{Echo, cell, error, failure, spec, value};

/// Walks everything reachable from a cell: own properties of every kind, prototypes, accessor functions, and the objects
/// that only some syntax or some call gives. Each object is named by the first path that reaches it, breadth first, so the
/// list changes only when what is reachable changes.
const WALK: &str = r"
const seeds = {globalThis};
const add = (name, make) => { try { seeds[name] = make() } catch (e) { seeds[name + ' threw'] = e } };
add('<generator>', () => (function* () {})());
add('<async generator>', () => (async function* () {})());
add('<async function>', () => async () => {});
add('<generator function>', () => function* () {});
add('<async generator function>', () => async function* () {});
add('<arguments>', () => (function () { return arguments })());
add('<array iterator>', () => [][Symbol.iterator]());
add('<map iterator>', () => new Map()[Symbol.iterator]());
add('<set iterator>', () => new Set()[Symbol.iterator]());
add('<string iterator>', () => ''[Symbol.iterator]());
add('<regexp iterator>', () => 'a'.matchAll(/a/g));
add('<match>', () => /(?<n>a)/d.exec('a'));
add('<iterator helper>', () => [].values().map(x => x));
add('<wrapped iterator>', () => Iterator.from({next() {}}));
add('<iterator concat>', () => Iterator.concat?.([]));
add('<segments>', () => new Intl.Segmenter().segment('a'));
add('<segment iterator>', () => new Intl.Segmenter().segment('a')[Symbol.iterator]());
add('<template>', () => (x => x)`a`);
add('<proxy>', () => Proxy.revocable({}, {}));
add('<resolvers>', () => Promise.withResolvers());
add('<call result>', () => z.read('a'));
add('<timer>', () => setTimeout(() => {}, 0));
add('<url>', () => new URL('http://a/?b=c'));
add('<params>', () => new URL('http://a/?b=c').searchParams);
add('<params iterator>', () => new URLSearchParams('a=b').entries());
add('<abort>', () => AbortSignal.abort());
add('<abort controller>', () => new AbortController());
add('<decoder>', () => new TextDecoder());
add('<encoder>', () => new TextEncoder());
add('<bytes>', () => new TextEncoder().encode('a'));
add('<clone>', () => structuredClone({a: new Map(), e: new Error('x'), d: new Date(0)}));
const caught = async (name, make) => { try { seeds[name] = await make() } catch (e) { seeds[name + ' threw'] = e } };
await caught('<import>', () => import('x'));
await caught('<import attributes>', () => import('x', {with: {type: 'json'}}));
await caught('<eval>', () => eval('1'));
await caught('<Function>', () => Function('return 1'));
await caught('<AsyncFunction>', () => (async () => {}).constructor('return 1'));
await caught('<GeneratorFunction>', () => (function* () {}).constructor('return 1'));
await caught('<AsyncGeneratorFunction>', () => (async function* () {}).constructor('return 1'));
await caught('<string timer>', () => setTimeout('1'));
await caught('<bad call>', () => z.read(() => 1));
await caught('<bad clone>', () => structuredClone(() => 1));
await caught('<bad url>', () => new URL('x'));
await caught('<bad base64>', () => atob('!'));
await caught('<overflow>', () => { const f = () => f(); f() });
await caught('<bad json>', () => JSON.parse('{'));
await caught('<bad regexp>', () => new RegExp('('));
await caught('<aggregate>', () => Promise.any([Promise.reject(1)]));
await caught('<failed call>', () => z.find('fail'));
await caught('<abort reason>', () => { AbortSignal.abort().throwIfAborted() });
Error.prepareStackTrace = (error, sites) => { seeds['<call sites>'] = sites; return 'prepared' };
await caught('<stack>', () => new Error('x').stack);
await caught('<captured>', () => { const o = {}; Error.captureStackTrace(o); return o.stack });
delete Error.prepareStackTrace;
const event = await new Promise(resolve => {
  const control = new AbortController();
  control.signal.addEventListener('abort', resolve);
  control.abort();
});
seeds['<event>'] = event;
seeds['<callback arguments>'] = await new Promise(resolve => setTimeout(function () { resolve([...arguments, this]) }, 0, 'x'));
seeds['<async stack>'] = await (async () => { await 0; return new Error('y') })();

const paths = new Map();
const queue = [];
const visit = (path, value) => {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || paths.has(value)) return;
  paths.set(value, path);
  queue.push(value);
};
for (const [name, seed] of Object.entries(seeds)) visit(name, seed);
const lines = [];
for (let i = 0; i < queue.length; i++) {
  const object = queue[i], path = paths.get(object);
  const names = [];
  for (const key of Reflect.ownKeys(object)) {
    const shown = typeof key === 'symbol' ? '@' + String(key.description) : key;
    const own = Reflect.getOwnPropertyDescriptor(object, key);
    if ('value' in own) {
      names.push(shown);
      visit(path + '.' + shown, own.value);
    } else {
      names.push((own.get ? 'get ' : '') + (own.set ? 'set ' : '') + shown);
      visit(path + '.get ' + shown, own.get);
      visit(path + '.set ' + shown, own.set);
    }
  }
  const proto = Reflect.getPrototypeOf(object);
  visit(path + '.__proto__', proto);
  const dull = typeof object === 'function' && names.every(n => n === 'length' || n === 'name') && proto === Function.prototype;
  lines.push(path + (dull ? '' : ' [' + names.sort().join(', ') + '] : ' + (proto === null ? 'null' : paths.get(proto))));
}
return lines;
";

/// The list is checked in; run with `ZEROSTACK_BLESS=1` to write it anew, and read the difference before it is committed.
#[test]
fn nothing_unknown_is_reachable_from_a_cell() {
    let outcome = run(spec(WALK), Arc::new(Echo::failing("find")), &CancelToken::new());
    let json = outcome.settled.unwrap().unwrap();
    let lines: Vec<String> = serde_json::from_str(&json).unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/frame_reachable.txt");
    let found: BTreeSet<&str> = lines.iter().map(String::as_str).collect();
    if std::env::var_os("ZEROSTACK_BLESS").is_some() {
        let text: Vec<&str> = found.iter().copied().collect();
        std::fs::write(file, text.join("\n") + "\n").unwrap();
        return;
    }
    let text = std::fs::read_to_string(file).unwrap();
    let known: BTreeSet<&str> = text.lines().collect();
    let new: Vec<_> = found.difference(&known).collect();
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "newly reachable: {new:#?}\nno longer: {gone:#?}"
    );
}

/// The list above is only as good as the walk: it must find what it should.
#[test]
fn the_walk_finds_a_planted_name() {
    let source =
        format!("Object.getPrototypeOf(async function* () {{}}).prototype.planted = {{deep: () => 1}};\n{WALK}");
    let outcome = run(spec(&source), Arc::new(Echo::failing("find")), &CancelToken::new());
    assert!(outcome.settled.unwrap().unwrap().contains("planted.deep"));
}

#[test]
fn code_from_strings_is_refused() {
    for source in [
        "eval('1')",
        "(0, eval)('1')",
        "new Function('return 1')",
        "Function('a', 'return a')",
        "(async () => {}).constructor('return 1')",
        "(function* () {}).constructor('return 1')",
        "(async function* () {}).constructor('return 1')",
        "Reflect.construct(Function, ['return 1'], Array)",
        "class F extends Function {}; new F('return 1')",
    ] {
        let (kind, _, detail) = failure(source);
        assert_eq!(kind, ErrorKind::Exception, "{source}");
        assert!(
            detail.starts_with("EvalError: Code generation from strings disallowed"),
            "{source}: {detail}"
        );
    }
    assert_eq!(
        failure("setTimeout('1', 0)").2,
        "TypeError: The callback must be a function"
    );
    assert_eq!(
        failure("await import('x')").2,
        "TypeError: import() is not available in a cell"
    );
    assert_eq!(
        failure("await import('node:fs', {with: {type: 'json'}})").2,
        "TypeError: import() is not available in a cell"
    );
    assert_eq!(
        failure("await import.source('x')").2,
        "TypeError: import() is not available in a cell"
    );
}

#[test]
fn names_of_other_worlds_are_absent() {
    let source = "
        const names = ['Deno', '__bootstrap', '__zero', '__infra', '__timers', 'WebAssembly', 'SharedArrayBuffer', 'Temporal', 'gc', 'process',
            'require', 'module', 'exports', 'global', 'self', 'window', 'fetch', 'Buffer', 'ShadowRealm', 'print', 'load', 'read', 'importScripts'];
        return [names.filter(n => n in globalThis), typeof Atomics.wait, typeof Atomics.waitAsync, typeof ArrayBuffer.prototype.resize,
            typeof Date.prototype.toTemporalInstant, Object.keys(globalThis), Symbol.for('Deno.core.internalPromiseId') in z.read('a')]";
    assert_eq!(
        value(source),
        json!([
            [],
            "undefined",
            "undefined",
            "undefined",
            "undefined",
            ["z", "input"],
            false
        ])
    );
    assert_eq!(
        failure("z = 1").2,
        "TypeError: Cannot assign to read only property 'z' of object '[object Object]'"
    );
    assert_eq!(
        failure("z.read = 1").2,
        "TypeError: Cannot assign to read only property 'read' of object '#<Object>'"
    );
    assert_eq!(
        value("const input = 1, z = 2; return [input, z]"),
        json!([1, 2]),
        "a cell may shadow them"
    );
}

#[test]
fn stacks_show_the_cell_alone() {
    let source = "
        const stacks = [];
        Error.prepareStackTrace = (e, sites) => { stacks.push('hook'); return sites };
        const look = (make) => { try { make() } catch (e) { stacks.push(e.stack) } };
        look(() => { throw new Error('plain') });
        look(() => new URL('x'));
        look(() => structuredClone(() => 1));
        look(() => [1].map(() => { throw new Error('inside') }));
        look(() => { Error.stackTraceLimit = Infinity; throw new Error('unlimited') });
        try { await z.find('x') } catch (e) { stacks.push(e.stack) }
        const o = {}; Error.captureStackTrace(o); stacks.push(o.stack);
        await (async () => { await 0; const e = new Error('later'); stacks.push(e.stack) })();
        Object.defineProperty(Error, 'stackTraceLimit', {get() { return 50 }});
        stacks.push(String(new Error('getter').stack));
        return stacks";
    let outcome = run(spec(source), Arc::new(Echo::failing("find")), &CancelToken::new());
    let text = outcome.settled.unwrap().unwrap();
    let stacks: Vec<String> = serde_json::from_str(&text).unwrap();
    assert_eq!(stacks.len(), 9);
    assert_eq!(
        stacks[0],
        "Error: plain\n    at cell:5:28\n    at look (cell:4:40)\n    at cell:5:9"
    );
    assert!(
        stacks[5].starts_with("ZeroError: find is told to fail\n    at cell:10:23"),
        "{}",
        stacks[5]
    );
    for stack in &stacks {
        for line in stack.lines().filter(|line| line.trim_start().starts_with("at ")) {
            assert!(
                line.contains("cell:") || line.contains("<anonymous>") || line.contains("Array.map"),
                "{stack}"
            );
        }
        for foreign in ["ext:", "deno", "/", ".js", ".rs", "hook"] {
            assert!(!stack.contains(foreign), "{foreign} in {stack}");
        }
    }
}

/// Each replaces what the surface might lean on. The calls must still go through unharmed, or fail in an ordinary way, and
/// nothing of the host may fall into the cell's hands.
#[test]
fn tampering_with_intrinsics_reaches_nothing() {
    // Every function a cell plants notes its arguments; a host function among them would show as a native non-intrinsic.
    let spy = "
        const seen = new Set();
        const apply = Reflect.apply, ownKeys = Reflect.ownKeys, describe = Reflect.getOwnPropertyDescriptor, define = Reflect.defineProperty;
        const spyOn = (target) => {
            for (const key of ownKeys(target)) {
                const own = describe(target, key);
                if (!own.configurable && !own.writable) continue;
                if (typeof own.value === 'function' && key !== 'constructor') {
                    const real = own.value;
                    define(target, key, {...own, value: function (...args) { note(this); for (let i = 0; i < args.length; i++) note(args[i]); return apply(real, this, args) }});
                }
            }
        };
        const isSet = Set.prototype.has, addTo = Set.prototype.add;
        const note = (value) => { if (typeof value === 'function') apply(addTo, seen, [value]) };
        const toText = Function.prototype.toString;
    ";
    let work = "
        const results = [];
        results[0] = (await z.read('a', {bytes: new Uint8Array([1, 2]), list: [1, {b: 'c'}]})).arguments[1].list[1].b;
        try { await z.find('x') } catch (e) { results[1] = e.kind }
        try { await z.find(() => 1) } catch (e) { results[2] = e.kind }
        results[3] = await new Promise(resolve => setTimeout(resolve, 1, 'timer'));
        results[4] = new URL('http://a/?b=c').searchParams.get('b');
        results[5] = new TextDecoder().decode(new TextEncoder().encode('text'));
        results[6] = structuredClone({a: [1]}).a[0];
        console.log('logged', {a: [1, new Map([[1, 2]])]});
    ";
    let expected = json!(["c", "io", "invalid_input", "timer", "c", "text", 1]);
    for target in [
        "Object.prototype",
        "Array.prototype",
        "Function.prototype",
        "Promise.prototype",
        "Promise",
        "Map.prototype",
        "Set.prototype",
        "String.prototype",
        "Uint8Array.prototype",
        "Object.getPrototypeOf(Uint8Array.prototype)",
        "ArrayBuffer.prototype",
        "Object",
        "Reflect",
        "JSON",
        "Array",
        "Error.prototype",
        "Number.prototype",
        "Symbol.prototype",
        "Object.getPrototypeOf([][Symbol.iterator]())",
        "RegExp.prototype",
        "Iterator.prototype",
    ] {
        let source =
            format!("{spy}\nspyOn({target});\n{work}\nreturn [results, [...seen].map(f => apply(toText, f, []))]");
        let outcome = run(spec(&source), Arc::new(Echo::failing("find")), &CancelToken::new());
        let text = outcome
            .settled
            .unwrap_or_else(|error| panic!("{target}: {error:?}"))
            .unwrap();
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer[0], expected, "{target}");
        for function in answer[1].as_array().unwrap() {
            let function = function.as_str().unwrap();
            assert!(
                !function.contains("bag.") && !function.contains("P."),
                "{target} got hold of {function}"
            );
        }
        assert_eq!(
            outcome.console[0].text, "logged { a: [ 1, Map(1) { 1 => 2 } ] }",
            "{target}"
        );
    }
}

#[test]
fn traps_and_thenables_run_as_the_cells_own_code() {
    // Poisoned setters on Array.prototype and Object.prototype see nothing of the surface's own lists.
    let source = "
        const seen = [];
        for (let i = 0; i < 12; i++) Object.defineProperty(Array.prototype, i, {__proto__: null, set(v) { seen[seen.length] = typeof v }, get() { return undefined }, configurable: true});
        for (const name of ['resolve', 'reject', 'failure', 'callback', 'value', 'get', 'set', 'up', 'key', 'kind', 'href', 'then2', '0', 'encoding'])
            Object.defineProperty(Object.prototype, name, {__proto__: null, set(v) { throw new Error('caught ' + name) }, get() { return undefined }, configurable: true});
        const answer = await z.read('a', {b: [1, 2]});
        const p = new URLSearchParams('a=1&b=2'); p.append('c', '3'); p.delete('a');
        const t = await new Promise(r => setTimeout(r, 1));
        const abort = new AbortController(); let n = 0; abort.signal.addEventListener('abort', () => n++); abort.abort();
        for (let i = 0; i < 12; i++) delete Array.prototype[i];
        return [answer.arguments[1].b.length, p.toString(), n, seen]";
    assert_eq!(value(source), json!([2, "b=2&c=3", 1, []]));
    // A `then` on every object is the cell's own business.
    let source = "
        const got = [];
        Object.defineProperty(Object.prototype, 'then', {get() { got.push(typeof this); return undefined }, configurable: true});
        const x = await z.read('a'); delete Object.prototype.then;
        return [x.name, got.every(t => t === 'object')]";
    assert_eq!(value(source), json!(["read", true]));
    let source = "
        Promise.prototype.then = function () { throw new Error('then') }; Promise.prototype.constructor = 5; Promise.resolve = 7;
        Object.defineProperty(Promise, Symbol.species, {value: 9});
        return (await z.read('a')).name";
    assert!(matches!(cell(source).settled, Ok(Some(_)) | Err(_)));
    // Arguments behind proxies and getters.
    assert_eq!(
        value("return (await z.read(new Proxy(['a'], {}), {get b() { return 'c' }})).arguments"),
        json!([["a"], {"b": "c"}])
    );
    assert_eq!(
        failure("await z.read(new Proxy({}, {ownKeys() { throw new Error('trap') }}))").2,
        "Error: trap"
    );
    assert_eq!(
        value("String.prototype.toJSON = () => 'changed'; return (await z.read('a')).arguments"),
        json!(["a"])
    );
    assert_eq!(
        value("JSON.stringify = () => 'evil'; JSON.parse = () => 'evil'; return (await z.read('a')).arguments"),
        json!(["a"])
    );
    assert_eq!(
        value(
            "globalThis.Promise = class {}; globalThis.Map = null; globalThis.Uint8Array = null; return (await z.read('a')).arguments"
        ),
        json!(["a"])
    );
    // Frozen, detached, mis-received.
    assert_eq!(
        value("const {read} = z; return (await read.call(null, 'a')).name"),
        json!("read")
    );
    assert_eq!(
        error("new z.read('a')").detail,
        "TypeError: z.read is not a constructor"
    );
    assert_eq!(
        error("URL.prototype.toString.call({})").detail,
        "TypeError: Cannot read private member #parts from an object whose class did not declare it"
    );
    assert_eq!(
        value(
            "class E extends (await z.find(() => 1).catch(e => e.constructor)) { constructor() { try { super() } catch { return {} } } }; return new E"
        ),
        json!({})
    );
}

#[test]
fn a_frame_shares_nothing_with_the_next() {
    cell(
        "globalThis.left = 1; Array.prototype.left = 1; Object.prototype.left = 1; z.left; console.left = 1; URL.prototype.left = 1",
    );
    assert_eq!(
        value("return [typeof left, typeof [].left, typeof console.left, typeof URL.prototype.left]"),
        json!(["undefined", "undefined", "undefined", "undefined"])
    );
}
