//! What an ordinary cell sees: values, calls, errors and their places, the console, the web interfaces.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use zero_contracts::{CancelToken, Error, ErrorKind, Operation};
use zerostack::frame::{CallReply, CallRequest, ConsoleLevel, FrameBudgets, FrameSpec, run};

use crate::frame_support::{Echo, Handler, cell, error, failure, silent, slow, spec, value};

#[test]
fn a_cell_returns_a_value() {
    assert_eq!(value("return 1 + 1"), json!(2));
    assert_eq!(
        value("const x = await Promise.resolve('é😀'); return {x, list: [1, null, true]}"),
        json!({"x": "é😀", "list": [1, null, true]})
    );
    assert_eq!(cell("const a = 1").settled.unwrap(), None);
    assert_eq!(cell("").settled.unwrap(), None);
    assert!(cell("").usage.heap_peak > 100_000);
    assert_eq!(
        value("return [typeof this, (() => { try { undeclared = 1 } catch (e) { return e.name } })()]"),
        json!(["undefined", "ReferenceError"])
    );
}

#[test]
fn input_is_bound() {
    let mut spec = spec("const z2 = z; return {n: input.n + 1, text: input.text}");
    spec.input = json!({"n": 41, "text": "\u{2028}\"é"}).as_object().unwrap().clone();
    let outcome = run(spec, Arc::new(Echo::default()), &CancelToken::new());
    assert_eq!(
        outcome.settled.unwrap().unwrap(),
        "{\"n\":42,\"text\":\"\u{2028}\\\"é\"}"
    );
}

#[test]
fn every_operation_reaches_the_handler() {
    let echo = Echo::default();
    let source = "
        await z.read('a', {lines: [1, 2]});
        await z.find('b');
        await z.edit('c', {content: new Uint8Array([1, 255])});
        await z.apply([{path: 'd', content: ''}]);
        await z.run(['true']);
        await z.state.get('k'); await z.state.set('k', 1, undefined); await z.state.test('k', 1);
        await z.state.delete('k'); await z.state.list();
        return (await z.read('a')).arguments";
    let outcome = run(spec(source), Arc::new(echo.clone()), &CancelToken::new());
    assert_eq!(outcome.settled.unwrap().unwrap(), "[\"a\"]");
    let calls: Vec<_> = echo
        .0
        .lock()
        .unwrap()
        .iter()
        .map(|(name, args)| format!("{name}{args}"))
        .collect();
    assert_eq!(
        calls,
        [
            "read[\"a\",{\"lines\":[1,2]}]",
            "find[\"b\"]",
            "edit[\"c\",{\"content\":{\"base64\":\"Af8=\"}}]",
            "apply[[{\"path\":\"d\",\"content\":\"\"}]]",
            "run[[\"true\"]]",
            "state.get[\"k\"]",
            "state.set[\"k\",1]",
            "state.test[\"k\",1]",
            "state.delete[\"k\"]",
            "state.list[]",
            "read[\"a\"]",
        ]
    );
    assert_eq!(outcome.usage.calls[&Operation::State], 5);
    assert_eq!(outcome.usage.calls[&Operation::Read], 2);
}

#[test]
fn bytes_come_back_as_arrays_of_the_cell() {
    let handler = Handler(|request: CallRequest| async move {
        Ok(if request.arguments == "[1]" {
            CallReply::bytes(vec![1, 2, 255])
        } else {
            CallReply::json(r#"{"a":[{"b~/":null}]}"#).with_bytes("/a/0/b~0~1", vec![7])
        })
    });
    let source = "
        const whole = await z.read(1), part = (await z.read(2)).a[0]['b~/'];
        return [whole instanceof Uint8Array, Array.from(whole), part instanceof Uint8Array, part[0]]";
    let outcome = run(spec(source), Arc::new(handler), &CancelToken::new());
    assert_eq!(outcome.settled.unwrap().unwrap(), "[true,[1,2,255],true,7]");
}

#[test]
fn errors_of_a_call_keep_their_type() {
    let handler = || {
        Arc::new(Handler(|_| async {
            Err(Error::new(ErrorKind::NotFound, "no such file")
                .with_path("a/b")
                .with_accepted(["c", "d"]))
        }))
    };
    let source = "try { await z.read('a/b') } catch (e) {
        return [e instanceof Error, e.name, e.kind, e.retryable, e.path, e.detail, e.message, e.accepted, String(e)] }";
    let outcome = run(spec(source), handler(), &CancelToken::new());
    let expected = json!([
        true,
        "ZeroError",
        "not_found",
        false,
        "a/b",
        "no such file",
        "no such file",
        ["c", "d"],
        "ZeroError: no such file"
    ]);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&outcome.settled.unwrap().unwrap()).unwrap(),
        expected
    );
    // Uncaught, it is the cell's own error, at the place of the call.
    let error = run(spec("\n  await z.read('a/b')"), handler(), &CancelToken::new())
        .settled
        .unwrap_err();
    assert_eq!(
        (error.kind, error.path.as_deref(), error.accepted.len()),
        (ErrorKind::NotFound, Some("a/b"), 2)
    );
    assert_eq!(error.location.map(|l| (l.line, l.column)), Some((2, 11)));
    // Whatever the cell writes into the object, the host believes what it sent.
    let source = "try { await z.read('a/b') } catch (e) { e.kind = 'internal'; e.detail = 'lies'; throw e }";
    let error = run(spec(source), handler(), &CancelToken::new()).settled.unwrap_err();
    assert_eq!(
        (error.kind, error.detail.as_str()),
        (ErrorKind::NotFound, "no such file")
    );
    // Its class makes nothing.
    let source =
        "try { await z.read('a/b') } catch (e) { try { new e.constructor({}) } catch (f) { return String(f) } }";
    let outcome = run(spec(source), handler(), &CancelToken::new());
    assert_eq!(outcome.settled.unwrap().unwrap(), "\"TypeError: Illegal constructor\"");
}

#[test]
fn exceptions_have_their_place_in_the_authors_text() {
    assert_eq!(
        failure("throw new TypeError('no')"),
        (ErrorKind::Exception, Some((1, 7)), "TypeError: no".into())
    );
    assert_eq!(
        failure("const a = '😀é'; null.x"),
        (
            ErrorKind::Exception,
            Some((1, 22)),
            "TypeError: Cannot read properties of null (reading 'x')".into()
        )
    );
    assert_eq!(
        failure("await 0;\n\nconst f = async () => { await 0; throw new Error('deep') };\nawait f()").1,
        Some((3, 40))
    );
    assert_eq!(failure("throw 'text'"), (ErrorKind::Exception, None, "text".into()));
    assert_eq!(failure("throw {a: [1]}").2, "{ a: [ 1 ] }");
    assert_eq!(failure("throw undefined").2, "undefined");
    assert_eq!(
        failure("class MyError extends Error {}; throw new MyError('x')").2,
        "Error: x"
    );
    assert_eq!(
        failure("const f = () => f(); f()").2,
        "RangeError: Maximum call stack size exceeded"
    );
    assert!(failure("throw new Error('y'.repeat(1e6))").2.len() < 5000);
}

#[test]
fn syntax_errors_have_a_place_and_nothing_runs() {
    let (kind, place, detail) = failure("console.log('ran');\nconst é = ;");
    assert_eq!((kind, place), (ErrorKind::Syntax, Some((2, 11))), "{detail}");
    assert!(cell("console.log('ran');\nconst é = ;").console.is_empty());
    for source in [
        "{",
        "'",
        "/*",
        "`",
        "return (",
        "await",
        "x = 08",
        "with (a) {}",
        "let z1; let z1",
        "import 'a'",
        "import.meta",
        "import a from 'a'",
        "export default 1",
        "yield 1",
        "let await = 1",
        "super()",
        "\u{0}",
    ] {
        let error = error(source);
        assert_eq!(error.kind, ErrorKind::Syntax, "{source}: {}", error.detail);
        assert!(error.location.is_some(), "{source}: {error:?}");
    }
}

#[test]
fn a_syntax_error_never_names_what_the_author_did_not_write() {
    for source in [
        "if (true) { return 1",
        "return [1, 2",
        "return {a: 1",
        "return 1 +",
        "return `abc",
        "return 1 }",
        "{",
        "}",
    ] {
        for source in [source.to_owned(), format!("{source}\n"), format!("// é\n{source}")] {
            let (kind, place, detail) = failure(&source);
            let last = source.split('\n').next_back().unwrap_or_default();
            let end = (source.matches('\n').count() as u64 + 1, last.chars().count() as u64 + 1);
            assert_eq!((kind, place), (ErrorKind::Syntax, Some(end)), "{source}: {detail}");
            assert!(
                detail.starts_with("SyntaxError: the end of the cell"),
                "{source}: {detail}"
            );
        }
    }
    // A bracket that stands in the cell is named.
    assert!(failure("return (1]").2.contains("']'"));
    for source in ["import fs from 'fs'", "import.meta", "export const a = 1"] {
        let detail = failure(source).2;
        assert!(
            detail.contains("a cell has no imports and no exports"),
            "{source}: {detail}"
        );
    }
}

#[test]
fn a_body_cannot_leave_its_wrapper() {
    for source in [
        "}); globalThis.evil = 1; (async () => {",
        "}); globalThis.evil = 1; (async function () {",
        "}, async function () {",
        "}) + (async function () {",
        "}\n})(); (async () => {{",
        "return 1 }/*\n*/); (function () {",
        "*/ } /*",
        "}",
    ] {
        let error = error(source);
        assert_eq!(error.kind, ErrorKind::Syntax, "{source}: {}", error.detail);
        assert!(error.location.is_some(), "{source}: {error:?}");
    }
    // These are whole bodies, whatever they look like.
    assert_eq!(value("return 1 //"), json!(1));
    assert_eq!(value("return 1 /* }) */"), json!(1));
    assert_eq!(value("return '}); ('"), json!("}); ("));
    assert_eq!(value("'use strict'; return 2\n//# sourceURL=/etc/passwd"), json!(2));
}

#[test]
fn values_that_json_would_lose_are_refused_with_their_place() {
    let refused = |source: &str| {
        let error = error(source);
        assert_eq!(error.kind, ErrorKind::InvalidInput, "{source}: {error:?}");
        error.path.unwrap_or_default()
    };
    assert_eq!(refused("return {a: [0, 1, 2, {b: 1n}]}"), "$.a[3].b");
    assert_eq!(refused("return () => 1"), "$");
    assert_eq!(refused("return {'a b': Symbol('x')}"), "$[\"a b\"]");
    assert_eq!(refused("const a = {}; a.self = {a}; return a"), "$.self.a");
    assert_eq!(refused("return [new Map()]"), "$[0]");
    assert_eq!(refused("return {s: new Set([1])}"), "$.s");
    assert_eq!(refused("return [z.read('a')]"), "$[0]");
    assert_eq!(refused("return [new Float64Array(1)]"), "$[0]");
    assert_eq!(refused("return [[1][Symbol.iterator](), (function* () {})()]"), "$[1]");
    let deep = refused("let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return a");
    assert!(deep.starts_with("$[0][0]") && deep.len() < 1000, "{deep}");
    let deep = refused("let a = {}; for (let i = 0; i < 1e6; i++) a = {longer_name_of_a_property: a}; return a");
    assert!(deep.starts_with("$…") && deep.len() < 1000, "{deep}");
    // The same rules and places for arguments.
    let error = error("await z.edit('a', {content: [1n]})");
    assert_eq!(
        (error.kind, error.path.as_deref()),
        (ErrorKind::InvalidInput, Some("arguments[1] of z.edit.content[0]"))
    );
    assert_eq!(
        failure("await z.edit('a', {content: 'x\\ud800'})").0,
        ErrorKind::InvalidInput
    );
}

#[test]
fn values_follow_json_where_json_has_an_answer() {
    assert_eq!(
        value("return [undefined, NaN, Infinity, -0, 1e21, 1.5]"),
        json!([null, null, null, 0, 1e21, 1.5])
    );
    assert_eq!(value("return {a: undefined, b: null}"), json!({"b": null}));
    assert_eq!(
        value("return {d: new Date(0), o: {toJSON: (k) => 'as ' + k}}"),
        json!({"d": "1970-01-01T00:00:00.000Z", "o": "as o"})
    );
    assert_eq!(value("return new URL('https://a/b')"), json!("https://a/b"));
    assert_eq!(
        value(
            "return {u: new Uint8Array([1,2]), b: new Uint8Array([3]).buffer, v: new DataView(new Uint8Array([9,8]).buffer, 1)}"
        ),
        json!({"u": {"base64": "AQI="}, "b": {"base64": "Aw=="}, "v": {"base64": "CA=="}})
    );
    assert_eq!(
        value("return [Object(1), Object('s'), Object(false)]"),
        json!([1, "s", false])
    );
    assert_eq!(
        value("return Promise.allSettled([Promise.reject(new RangeError('r'))])"),
        json!([{"status": "rejected", "reason": {"name": "RangeError", "message": "r"}}])
    );
    assert_eq!(
        value("class P { a = 1; #b = 2; get c() { return 3 } } return new P"),
        json!({"a": 1})
    );
    assert_eq!(
        value("return Object.create(null, {x: {value: 1, enumerable: true}})"),
        json!({"x": 1})
    );
    assert_eq!(value("return 'cut \\ud83d'"), json!("cut \u{fffd}"));
    assert_eq!(
        value("return {['__proto__']: 1, '\\u2028\\u0000\"': 2}"),
        json!({"__proto__": 1, "\u{2028}\0\"": 2})
    );
    let (kind, place, detail) = failure("return {\n get a() { throw new Error('g') } }");
    assert_eq!(
        (kind, place, detail.as_str()),
        (ErrorKind::Exception, Some((2, 18)), "Error: g")
    );
}

#[test]
fn the_console_is_captured_as_text() {
    let outcome = cell(
        "console.log('a', 1, 2n, null, undefined, true, [1, 'b', , {c: Symbol('d')}], {e: {f: {g: {h: {i: 1}}}}});
         console.info(new Map([['k', new Set([1])]]), new Uint8Array([1, 2]), /x/g, new Date(0), () => 1, function named() {});
         console.warn({get danger() { throw 1 }}, new Proxy({}, {ownKeys() { throw 1 }}), Object.create(null), new (class Foo { x = 1 }));
         console.error(new Error('boom').message, Promise.resolve(1), Object('s')); console.debug();
         const a = []; a.push(a); console.log(a, 'x'.repeat(1e5).length, 'y'.repeat(1e5))",
    );
    outcome.settled.unwrap();
    let lines: Vec<_> = outcome
        .console
        .iter()
        .map(|line| (line.level, line.text.as_str()))
        .collect();
    assert_eq!(
        lines[0],
        (
            ConsoleLevel::Log,
            "a 1 2n null undefined true [ 1, \"b\", <empty>, { c: Symbol(d) } ] { e: { f: { g: { h: [Object] } } } }"
        )
    );
    assert_eq!(
        lines[1],
        (
            ConsoleLevel::Info,
            "Map(1) { \"k\" => Set(1) { 1 } } Uint8Array(2) [ 1, 2 ] /x/g 1970-01-01T00:00:00.000Z [Function] [Function: named]"
        )
    );
    assert_eq!(
        lines[2],
        (
            ConsoleLevel::Warn,
            "{ danger: [Getter] } [not printable] [Object: null prototype] {} Foo { x: 1 }"
        )
    );
    assert_eq!(lines[3], (ConsoleLevel::Error, "boom Promise {} [\"s\"]"));
    assert_eq!(lines[4], (ConsoleLevel::Debug, ""));
    assert!(lines[5].1.starts_with("[ [Circular] ] 100000 yyy") && lines[5].1.len() < 17_000);
}

#[test]
fn the_console_is_bounded() {
    let mut spec = spec("for (let i = 0; i < 100000; i++) console.log('line ' + i)");
    spec.budgets.console_bytes = 10_000;
    let outcome = run(spec, Arc::new(Echo::default()), &CancelToken::new());
    let kept: usize = outcome.console.iter().map(|line| line.text.len()).sum();
    assert!(kept < 10_000 && outcome.console.len() > 100, "{kept}");
    assert_eq!(outcome.console.len() as u64 + outcome.console_omitted, 100_000);
    assert_eq!(outcome.console[0].text, "line 0");
    assert_eq!(outcome.console.last().unwrap().text, "line 99999");
}

#[test]
fn independent_calls_overlap() {
    let start = Instant::now();
    let source = "return await Promise.all(Array.from({length: 8}, () => z.read('a')))";
    let outcome = run(spec(source), slow(Duration::from_millis(500)), &CancelToken::new());
    assert_eq!(outcome.settled.unwrap().unwrap(), "[1,1,1,1,1,1,1,1]");
    assert!(
        start.elapsed() < Duration::from_millis(3500),
        "eight calls of half a second one after the other take four"
    );
}

#[test]
fn calls_past_the_concurrent_limit_wait_their_turn() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NOW: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    let handler = Handler(|_| async {
        MOST.fetch_max(NOW.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(2)).await;
        NOW.fetch_sub(1, Ordering::SeqCst);
        Ok(CallReply::json("1"))
    });
    let budgets = FrameBudgets {
        concurrent_calls: 3,
        ..FrameBudgets::default()
    };
    let source = "return (await Promise.all(Array.from({length: 20}, () => z.read('a')))).length".to_owned();
    let outcome = run(
        FrameSpec {
            source,
            budgets,
            ..FrameSpec::default()
        },
        Arc::new(handler),
        &CancelToken::new(),
    );
    assert_eq!(
        (outcome.settled.unwrap().unwrap().as_str(), MOST.load(Ordering::SeqCst)),
        ("20", 3)
    );
}

#[test]
fn what_is_pending_at_the_end_is_cancelled_and_named() {
    let outcome = run(
        spec("z.read('a'); z.edit('b', {}); z.state.get('c'); await null; return 1"),
        silent(),
        &CancelToken::new(),
    );
    assert_eq!(outcome.settled.unwrap().unwrap(), "1");
    assert_eq!(outcome.pending, [Operation::Read, Operation::Edit, Operation::State]);
    // The handler's token ends with the cell.
    let (send, receive) = std::sync::mpsc::channel();
    let handler = Handler(move |request: CallRequest| {
        send.send(request.cancel).unwrap();
        std::future::pending()
    });
    run(
        spec("z.read('a'); return await new Promise(r => setTimeout(r, 5))"),
        Arc::new(handler),
        &CancelToken::new(),
    );
    assert!(receive.recv().unwrap().is_cancelled());
}

#[test]
fn a_cell_that_waits_for_nothing_fails_at_once() {
    let start = Instant::now();
    for source in [
        "await new Promise(() => {})",
        "await {then() {}}",
        "for await (const x of (async function* () { yield await new Promise(() => {}) })()) {}",
    ] {
        let (kind, _, detail) = failure(source);
        assert_eq!(kind, ErrorKind::Exception);
        assert!(detail.contains("nothing can settle"), "{detail}");
    }
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_floating_rejection_fails_the_cell() {
    assert_eq!(failure("Promise.reject(new Error('lost')); return 1").2, "Error: lost");
    assert_eq!(failure("(async () => { await null; throw new Error('later') })(); await new Promise(r => setTimeout(r, 20)); return 1").2, "Error: later");
    assert_eq!(
        failure("setTimeout(() => { throw new Error('timer') }, 1); await new Promise(r => setTimeout(r, 20))").2,
        "Error: timer"
    );
    assert_eq!(
        failure("queueMicrotask(() => { throw new Error('micro') }); await null; await null; await null; return 1").2,
        "Error: micro"
    );
    assert_eq!(
        value("const p = Promise.reject(new Error('handled')); p.catch(() => {}); return 1"),
        json!(1)
    );
    assert_eq!(
        value("const p = Promise.reject(new Error('in time')); try { await p } catch {} return 1"),
        json!(1)
    );
}
