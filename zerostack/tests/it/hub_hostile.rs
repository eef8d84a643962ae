//! Values that a cell hands to `z` to do harm. Each ends as an ordinary answer or error, the tree stays what it was, and the
//! next cell is a normal one.

use serde_json::json;
use zero_contracts::ErrorKind;

use crate::hub_support::Workspace;

/// Runs calls that must all fail, each with one of these kinds, and change nothing.
fn refused(ws: &Workspace, calls: &[&str], kinds: &[ErrorKind]) {
    let before = ws.tree();
    for call in calls {
        let outcome = ws.value(&format!(
            "try {{ return ['gave', await {call}] }} catch (e) {{ return ['threw', e.kind] }}"
        ));
        let kind = kinds.iter().find(|kind| outcome == json!(["threw", kind.as_str()]));
        assert!(kind.is_some(), "{call}: {outcome}");
        assert_eq!(ws.tree(), before, "{call}");
    }
    assert_eq!(ws.value("return z.read('a')"), "x\n");
}

#[test]
fn forged_handles_name_nothing() {
    let ws = Workspace::new(&[("a", "x\n"), ("b/c", "y\n")]);
    let kinds = [ErrorKind::NotFound, ErrorKind::InvalidInput];
    let zeros = "0".repeat(64);
    let mut calls = Vec::new();
    for kind in ["blob", "snapshot", "event", "effect"] {
        calls.push(format!("z.read('z://{kind}/{zeros}')"));
        calls.push(format!("z.edit('z://{kind}/{zeros}', {{content: 'z'}})"));
        calls.push(format!("z.apply([{{path: 'z://{kind}/{zeros}', remove: true}}])"));
        calls.push(format!("z.run(['cat'], {{stdin: 'z://{kind}/{zeros}'}}).then((r) => {{ if (r.exitCode === 0 && r.stdout !== '' && !r.stdout.startsWith('z://')) return r; throw Object.assign(new Error(), {{kind: 'not_found'}}) }})"));
    }
    for forged in [
        "z://blob/",
        "z://blob/../../a",
        "z://blob/zz",
        "z://other/00",
        "z://",
        "z:/blob",
        "Z://BLOB/00",
        "z://blob/\\u0000",
        "z://snapshot/a",
        "z://event/%2e%2e",
    ] {
        calls.push(format!("z.read('{forged}')"));
        calls.push(format!("z.edit('{forged}', {{content: 'z'}})"));
    }
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    refused(&ws, &calls, &kinds);
    // A true handle of another kind is not taken for what it is not.
    let cell = format!(
        "try {{ await z.edit({}, {{content: 'z'}}) }} catch (e) {{ return e.kind }}",
        json!(ws.run("return 1").event)
    );
    assert!(kinds.map(|kind| json!(kind.as_str())).contains(&ws.value(&cell)));
    assert_eq!(ws.file("a"), "x\n");
}

#[test]
fn proxies_getters_and_thenables_are_read_once_and_do_no_harm() {
    let ws = Workspace::new(&[("a", "x\n"), ("b", "y\n")]);
    let before = ws.tree();
    for (cell, wanted) in [
        // What is checked is what is done: a getter is asked once, and the host gets its text.
        (
            "let n = 0; const target = {toJSON: () => n++ ? 'b' : 'a'}; return [await z.read(target), n]",
            json!(["x\n", 1]),
        ),
        (
            "let n = 0; const o = {get lines() { n++; return [1, 1] }}; return [(await z.read('a', o)).content, n]",
            json!(["x\n", 1]),
        ),
        (
            "const o = new Proxy({}, {ownKeys: () => ['lines'], getOwnPropertyDescriptor: () => ({enumerable: true, configurable: true}), get: (t, k) => k === 'lines' ? [1, 1] : undefined}); return (await z.read('a', o)).content",
            json!("x\n"),
        ),
        // A getter may call `z` itself.
        (
            "let inner; const o = {get lines() { inner = z.read('b'); return [1, 1] }}; return [(await z.read('a', o)).content, await inner]",
            json!(["x\n", "y\n"]),
        ),
        // A thenable is a value like any other, and `then` on a prototype is the cell's own affair.
        (
            "return await z.read({then(r) { r('a') }}).catch((e) => e.kind)",
            json!("invalid_input"),
        ),
        (
            "await z.state.set('k', {then: 1}); return await z.state.get('k')",
            json!({"then": 1}),
        ),
        (
            "Object.prototype.then = function (r) { delete Object.prototype.then; r('own') }; return await z.state.list()",
            json!("own"),
        ),
        // Members that would change what the host reads.
        (
            "return await z.read('a', JSON.parse('{\"__proto__\": {\"full\": true}}')).catch((e) => e.kind)",
            json!("invalid_input"),
        ),
        (
            "Object.prototype.full = true; Object.prototype.snapshot = true; return z.read('a')",
            json!("x\n"),
        ),
        (
            "Object.prototype.toJSON = () => 'b'; Array.prototype.toJSON = () => 'b'; String.prototype.toJSON = () => 'b'; return [(await z.read('a', {lines: [1, 1]})).content].join()",
            json!("x\n"),
        ),
        (
            "return await z.read('a', {constructor: 1}).catch((e) => e.kind)",
            json!("invalid_input"),
        ),
        // Bytes that are none.
        (
            "return await z.edit('n', {create: {base64: '%%%'}}).catch((e) => e.kind)",
            json!("invalid_input"),
        ),
        (
            "const o = {}; o.o = o; return await z.edit('n', {create: o}).catch((e) => e.kind)",
            json!("invalid_input"),
        ),
        (
            "return await z.read('a\\ud800').catch((e) => e.kind)",
            json!("invalid_input"),
        ),
        (
            "return await z.read('a\\0b').catch((e) => e.kind)",
            json!("invalid_input"),
        ),
        (
            "return await z.read('x'.repeat(1e6)).catch((e) => typeof e.kind)",
            json!("string"),
        ),
        (
            "return await z.read('a/'.repeat(1e5)).catch((e) => typeof e.kind)",
            json!("string"),
        ),
        (
            "return await Promise.all([z.read, z.find, z.edit, z.apply, z.run].map((f) => f().catch((e) => e.kind)))",
            json!([
                "invalid_input",
                "invalid_input",
                "invalid_input",
                "invalid_input",
                "invalid_input"
            ]),
        ),
        (
            "return await Promise.all([1, null, {}, true].flatMap((v) => [z.read(v), z.find(v), z.run(v), z.apply(v), z.edit(v, v)].map((p) => p.then(() => 'gave', (e) => e.kind)))).then((k) => [...new Set(k)])",
            json!(["invalid_input"]),
        ),
    ] {
        assert_eq!(ws.value(cell), wanted, "{cell}");
    }
    assert_eq!(ws.tree(), before);
}

#[test]
fn a_frame_that_was_given_up_taints_the_kernel_and_stops_nothing() {
    let ws = Workspace::new(&[("a", "x\n")]);
    assert!(!ws.kernel.status().unwrap().tainted || std::env::var_os("NEXTEST").is_none());
    let error = ws.error("await z.edit('a', {content: 'lost'}, {expect: 'any'}); Array(1e9).fill(0)");
    assert_eq!(error.kind, ErrorKind::Budget);
    let status = ws.kernel.status().unwrap();
    assert!(
        status.tainted && status.frames_given_up > 0 && status.running.is_empty(),
        "{status:?}"
    );
    assert_eq!(ws.file("a"), "x\n");
    for _ in 0..20 {
        let cell = "let k = []; for (let i = 0; i < 40; i++) k = Array.from({length: 5000}, (_, j) => ({i, j})); return (await z.read('a')) + k.length";
        assert_eq!(ws.value(cell), "x\n5000");
    }
}
