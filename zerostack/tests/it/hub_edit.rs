//! `z.edit` and `z.apply` through the whole kernel.

use std::fs;

use serde_json::json;
use zero_contracts::ErrorKind;
use zero_contracts::response::Disposition;

use crate::hub_support::Workspace;

#[test]
fn an_edit_is_staged_seen_and_then_published() {
    let ws = Workspace::new(&[("a", "one\ntwo\n")]);
    let response = ws.run(
        "const r = await z.edit('a', {find: 'two', replacement: '$&$1'});
         return [r.status, r.path, await z.read('a')]",
    );
    assert_eq!(response.value.unwrap().0, json!(["staged", "a", "one\n$&$1\n"]));
    assert_eq!(
        (response.effects.disposition, response.effects.receipts),
        (Disposition::Committed, 1)
    );
    assert_eq!(ws.file("a"), "one\n$&$1\n");
}

#[test]
fn a_change_that_names_no_text_needs_a_guard() {
    let ws = Workspace::new(&[("a", "one\n")]);
    let error = ws.error("return z.edit('a', {content: 'new'})");
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.detail.contains("expect"), "{}", error.detail);
    ws.value("await z.read('a'); await z.edit('a', {content: 'new'})");
    assert_eq!(ws.file("a"), "new");
    ws.value("await z.edit('a', {content: 'newer'}, {expect: 'any'})");
    assert_eq!(ws.file("a"), "newer");
}

#[test]
fn what_somebody_else_changed_since_it_was_read_is_a_conflict() {
    let ws = Workspace::new(&[("a", "one\n"), ("b", "")]);
    let path = ws.root.path().join("a");
    let cell = "await z.read('a'); await z.run(['sh', '-c', 'true']); return z.edit('a', {content: 'mine'})";
    ws.value(cell);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    let stale = zero_contracts::Digest::of(b"one\n").to_hex();
    let error = ws.error(&format!(
        "return z.edit('a', {{find: 'mine', replacement: 'x'}}, {{expect: '{stale}'}})"
    ));
    assert_eq!((error.kind, error.path.as_deref()), (ErrorKind::Conflict, Some("a")));
    assert_eq!(ws.file("a"), "mine");
}

#[test]
fn a_snapshot_is_a_target_that_guards_itself() {
    let ws = Workspace::new(&[("a", "one\n")]);
    ws.value("const s = await z.read('a', {snapshot: true}); await z.edit(s.snapshot, {content: 'two\\n'})");
    assert_eq!(ws.file("a"), "two\n");
    let cell = "const s = await z.read('a', {snapshot: true});
        await z.edit('a', {content: 'three'}); return z.edit(s.snapshot, {content: 'four'})";
    assert_eq!(ws.error(cell).kind, ErrorKind::Conflict);
    assert_eq!(ws.file("a"), "two\n");
}

#[test]
fn an_ambiguous_match_says_how_many_and_a_count_settles_it() {
    let ws = Workspace::new(&[("a", "x\nx\n")]);
    let error = ws.error("return z.edit('a', {find: 'x', replacement: 'y'})");
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.detail.contains('2'), "{}", error.detail);
    ws.value("await z.edit('a', {find: 'x', replacement: 'y', count: 2})");
    assert_eq!(ws.file("a"), "y\ny\n");
    assert_eq!(
        ws.error("return z.edit('a', {find: ' ', replacement: 'y'})").kind,
        ErrorKind::InvalidInput
    );
}

#[test]
fn a_caught_conflict_leaves_the_cell_committable() {
    let ws = Workspace::new(&[("a", "one\n")]);
    let value = ws.value(
        "let kind; try { await z.edit('a', {find: 'nope', replacement: 'x'}) } catch (e) { kind = [e.kind, e.retryable, e.path] }
         await z.edit('a', {find: 'one', replacement: 'two'}); return kind",
    );
    assert_eq!(value, json!(["conflict", false, "a"]));
    assert_eq!(ws.file("a"), "two\n");
}

#[test]
fn an_apply_is_all_or_nothing_and_chains_in_order() {
    let ws = Workspace::new(&[("a", "1\n"), ("b", "1\n")]);
    let error = ws.error(
        "try { await z.apply([{path: 'a', find: '1', replacement: '2'}, {path: 'b', find: 'none', replacement: '2'}]) }
         catch (e) { if (await z.read('a') !== '1\\n') throw new Error('half staged'); throw e }",
    );
    assert_eq!((error.kind, error.path.as_deref()), (ErrorKind::Conflict, Some("b")));
    assert_eq!(ws.file("a"), "1\n");
    ws.value(
        "await z.apply([{path: 'a', find: '1', replacement: '2'}, {path: 'a', find: '2', replacement: '3'}, {move: ['a', 'c/d']},
          {copy: ['b', 'c/e']}, {mkdir: 'm/n'}, {symlink: ['../b', 'm/l']}, {path: 'b', mode: 0o600}])",
    );
    assert_eq!(ws.file("c/d"), "3\n");
    assert_eq!(ws.file("m/l"), "1\n");
    assert!(!ws.has("a") && ws.has("m/n"));
}

#[test]
fn bad_operations_are_named() {
    let ws = Workspace::new(&[("a", "1\n")]);
    let error = ws.error("return z.apply([{path: 'a', find: '1', replace: '2'}])");
    assert_eq!(error.kind, ErrorKind::InvalidInput);
    assert!(error.accepted.contains(&"replacement".to_owned()), "{error:?}");
    let error = ws.error("return z.apply('a')");
    assert_eq!(
        (error.kind, error.path.as_deref()),
        (ErrorKind::InvalidInput, Some("operations"))
    );
    let error = ws.error("return z.apply({effect: 'mail', key: 'k', payload: 1})");
    assert_eq!(error.kind, ErrorKind::Unsupported);
    let error = ws.error("return z.edit('/etc/hostname', {content: 'x'}, {expect: 'any'})");
    assert_eq!(error.kind, ErrorKind::OutsideWorkspace);
}

#[test]
fn verify_unstages_what_does_not_parse_or_pass() {
    let ws = Workspace::new(&[("src/a.rs", "fn a() {}\n"), ("b", "1\n")]);
    let error = ws.error("return z.apply([{path: 'src/a.rs', find: '{}', replacement: '{'}], {verify: {parse: true}})");
    assert_eq!(error.kind, ErrorKind::Conflict);
    let cell = "
        let why; try { await z.apply([{path: 'b', find: '1', replacement: '2'}], {verify: {command: ['sh', '-c', 'cat b; exit 3']}}) }
        catch (e) { why = e }
        await z.edit('c', {create: 'kept'});
        return [why.kind, why.message.includes('2') && why.message.includes('3'), await z.read('b')]";
    assert_eq!(ws.value(cell), json!(["conflict", true, "1\n"]));
    assert_eq!((ws.file("b"), ws.file("c")), ("1\n".into(), "kept".into()));
    ws.value("await z.apply([{path: 'b', find: '1', replacement: '2'}], {verify: {parse: true, command: ['grep', '-q', '2', 'b']}})");
    assert_eq!(ws.file("b"), "2\n");
}

#[test]
fn an_edit_that_nobody_awaits_fails_the_cell() {
    let ws = Workspace::new(&[("a", "1\n")]);
    let before = ws.tree();
    let error = ws.error("z.run(['sleep', '5']); await null; return 1");
    assert_eq!(error.kind, ErrorKind::Exception);
    assert!(error.detail.contains("z.run"), "{}", error.detail);
    assert_eq!(ws.tree(), before);
}

#[test]
fn what_is_wrong_with_an_apply_is_told_by_argument_and_place() {
    let ws = Workspace::new(&[("a", "1\n")]);
    for (arguments, place) in [
        ("{path: 'b', create: 'x'}", "operations"),
        ("'b'", "operations"),
        ("", "operations"),
        ("['b']", "operations[0]"),
        ("[{path: 'b', create: 'x'}, {move: 'a'}]", "operations[1].move"),
        ("[{path: 'a', contents: 'x'}]", "operations[0].contents"),
        ("[{path: 'b', create: 'x'}], {verify: true}", "options.verify"),
        (
            "[{path: 'b', create: 'x'}], {verify: {comand: ['true']}}",
            "options.verify.comand",
        ),
        ("[{path: 'b', create: 'x'}], {check: true}", "options.check"),
    ] {
        let error = ws.error(&format!("await z.apply({arguments})"));
        assert_eq!(
            (error.kind, error.path.as_deref()),
            (ErrorKind::InvalidInput, Some(place)),
            "{arguments}: {error:?}"
        );
    }
    assert!(!ws.has("b"));
}
