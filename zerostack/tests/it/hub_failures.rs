//! A cell that fails leaves no trace, whatever it changed and however it fails.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use zero_contracts::response::{Disposition, Outcome};
use zero_contracts::{CancelToken, ErrorKind};
use zerostack::CellOptions;

use crate::hub_support::{Tree, Workspace};

/// Every shape of change of the contract, through the engine and through commands.
const CHANGES: &[&str] = &[
    "await z.edit('new/deep/file', {create: 'x'})",
    "await z.edit('text', {find: 'two', replacement: '2'})",
    "await z.edit('text', {lines: [1, 2], content: ''}, {expect: 'any'})",
    "await z.edit('text', {insertBefore: 1, content: 'zero\\n'}, {expect: 'any'})",
    "await z.edit('text', {insertAfter: 'two', content: 'half\\n'})",
    "await z.edit('text', {patch: '--- a/text\\n+++ b/text\\n@@ -1,3 +1,3 @@\\n one\\n-two\\n+TWO\\n three\\n'})",
    "await z.edit('text', {content: new Uint8Array([0, 255])}, {expect: 'any'})",
    "await z.edit('text', {remove: true}, {expect: 'any'})",
    "await z.edit('link', {remove: true}, {expect: 'any'})",
    "await z.edit('private', {mode: 0o755})",
    "await z.edit('private', {content: 'open'}, {expect: 'any'})",
    "await z.edit('link', {find: 'one', replacement: 'through the link'})",
    "await z.apply([{move: ['text', 'moved/to/here']}])",
    "await z.apply([{move: ['dir', 'moved']}])",
    "await z.apply([{copy: ['text', 'copy']}])",
    "await z.apply([{mkdir: 'made/for/nothing'}])",
    "await z.apply([{symlink: ['text', 'second-link']}])",
    "await z.apply([{path: 'text', find: 'one', replacement: '1'}, {path: 'text', find: 'two', replacement: '2'}, {move: ['text', 't']}, {path: 't', mode: 0o600}])",
    "await z.run('echo more >> text')",
    "await z.run('rm -r dir text link')",
    "await z.run('mv dir dir2; mkdir dir; echo x > dir/y')",
    "await z.run('chmod 700 text dir; ln -sf private link; mkdir -p e/f')",
    "await z.run(\"touch $(printf 'odd\\\\377name')\")",
    "await z.run('rm text && mkdir text && touch text/inside')",
    "await z.run('rm -r empty; rm private; ln -s text private')",
    "await z.edit('text', {find: 'two', replacement: '2'}); await z.run('cat text > dir/inner; rm text'); await z.edit('text', {create: 'again'})",
    "await z.run('echo 1 > text'); await z.run('echo 2 >> text'); await z.edit('text', {find: '2', replacement: '3'})",
];

fn workspace() -> (Workspace, Tree) {
    let ws = Workspace::new(&[
        ("text", "one\ntwo\nthree\n"),
        ("dir/inner", "inner\n"),
        ("dir/sub/x", "x"),
        ("private", "secret\n"),
    ]);
    fs::create_dir(ws.root.path().join("empty")).unwrap();
    fs::set_permissions(ws.root.path().join("private"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("text", ws.root.path().join("link")).unwrap();
    let tree = ws.tree();
    (ws, tree)
}

#[test]
fn a_throw_after_every_shape_of_change_leaves_no_trace() {
    let (ws, before) = workspace();
    for change in CHANGES {
        let response = ws.run(&format!("{change}; throw new Error('on purpose')"));
        let error = response.error.unwrap();
        assert_eq!(
            (error.kind, error.detail.contains("on purpose")),
            (ErrorKind::Exception, true),
            "{change}: {error:?}"
        );
        assert_eq!(response.effects.disposition, Disposition::Restored, "{change}");
        assert_eq!(ws.tree(), before, "{change}");
    }
}

#[test]
fn the_same_changes_are_published_when_nothing_fails() {
    for change in CHANGES {
        let (ws, before) = workspace();
        let response = ws.run(change);
        assert_eq!(response.outcome, Outcome::Completed, "{change}: {:?}", response.error);
        assert_ne!(ws.tree(), before, "{change}");
        assert_eq!(response.effects.disposition, Disposition::Committed, "{change}");
    }
}

#[test]
fn every_way_to_fail_leaves_no_trace() {
    let (ws, before) = workspace();
    let changes = "await z.edit('text', {find: 'two', replacement: '2'}); await z.run('rm -r dir; echo x > y');";
    for (failure, kind) in [
        ("return null.x", ErrorKind::Exception),
        ("return Promise.reject(7)", ErrorKind::Exception),
        ("return () => 1", ErrorKind::InvalidInput),
        ("await new Promise(() => {})", ErrorKind::Exception),
        (
            "Promise.reject(new Error('floating')); await z.read('text'); return 1",
            ErrorKind::Exception,
        ),
        ("return z.read('nowhere')", ErrorKind::NotFound),
        (
            "z.edit('dir/inner', {create: 'x'}); z.run('sleep 9'); return 1",
            ErrorKind::Exception,
        ),
        (
            "const keep = []; for (;;) keep.push(new Array(1e6).fill(keep.length))",
            ErrorKind::Budget,
        ),
    ] {
        let error = ws.error(&format!("{changes} {failure}"));
        assert_eq!(error.kind, kind, "{failure}: {error:?}");
        assert_eq!(ws.tree(), before, "{failure}");
    }
}

#[test]
fn deadline_and_cancellation_leave_no_trace() {
    let (ws, before) = workspace();
    let changes = "await z.edit('text', {find: 'two', replacement: '2'}); await z.run('rm -r dir');";
    for end in [
        "for (;;) {}",
        "await z.run('sleep 100')",
        "await new Promise(r => setTimeout(r, 1e6))",
    ] {
        let options = CellOptions {
            timeout: Some(Duration::from_millis(1500)),
            ..CellOptions::default()
        };
        let response = ws.kernel.execute_cell_with(&format!("{changes} {end}"), options);
        assert_eq!(
            (response.outcome, response.error.unwrap().kind),
            (Outcome::Failed, ErrorKind::Deadline),
            "{end}"
        );
        assert_eq!(ws.tree(), before, "{end}");

        let cancel = CancelToken::new();
        let canceller = cancel.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(700));
            canceller.cancel();
        });
        let options = CellOptions {
            cancel: Some(cancel),
            ..CellOptions::default()
        };
        let response = ws.kernel.execute_cell_with(&format!("{changes} {end}"), options);
        thread.join().unwrap();
        assert_eq!(
            (response.outcome, response.error.unwrap().kind),
            (Outcome::Cancelled, ErrorKind::Cancelled),
            "{end}"
        );
        assert_eq!((response.ledger.live_tasks, response.ledger.live_children), (0, 0));
        assert_eq!(ws.tree(), before, "{end}");
    }
}

#[test]
fn a_save_by_somebody_else_before_the_commit_is_kept() {
    let (ws, _) = workspace();
    let path = ws.root.path().join("text");
    let saver = {
        let path = path.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            fs::write(path, "somebody else's\n").unwrap();
        })
    };
    let error = ws.error(
        "await z.edit('text', {find: 'two', replacement: '2'}); await new Promise(r => setTimeout(r, 900)); return 1",
    );
    saver.join().unwrap();
    assert_eq!((error.kind, error.path.as_deref()), (ErrorKind::Conflict, Some("text")));
    assert_eq!(fs::read_to_string(path).unwrap(), "somebody else's\n");
}

#[test]
fn a_cell_that_does_not_parse_never_runs() {
    let (ws, before) = workspace();
    for cell in [
        "await z.edit('text', {remove: true}); return (",
        "}); evil(); (async () => {",
        "import 'x'",
    ] {
        let response = ws.run(cell);
        let error = response.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Syntax, "{cell}");
        assert_eq!(error.phase, zero_contracts::response::Phase::Rejected);
        assert!(error.location.is_some(), "{cell}");
        assert_eq!(response.effects.disposition, Disposition::NeverAdmitted);
        assert!(response.event.is_some());
    }
    assert_eq!(ws.tree(), before);
}

/// Rule files that ignore themselves, as virtual environments and caches of test runners write them.
#[test]
fn ignored_files_survive_whatever_the_rule_files_say_of_themselves() {
    for files in [
        &[("venv/.gitignore", "*\n"), ("venv/bin/python", "py"), ("a", "1\n")][..],
        &[(".gitignore", "*\n"), ("a", "1\n"), ("d/b", "2\n")],
        &[
            (".gitignore", ".gitignore\nbuild\n.env\n"),
            (".env", "secret"),
            ("build/out", "o"),
            ("a", "1\n"),
        ],
        &[(".ignore", ".ignore\nbuild\n"), ("build/out", "o"), ("a", "1\n")],
    ] {
        let ws = Workspace::new(files);
        let before = ws.tree();
        let response = ws.run("await z.run('true')");
        assert_eq!(
            (response.outcome, response.effects.disposition),
            (Outcome::Completed, Disposition::None),
            "{files:?}"
        );
        for cell in [
            "await z.run('true'); throw 1",
            "await z.run('echo 9 > a; echo new > made'); throw 1",
            "await z.run('echo \"*\" > .gitignore'); await z.run('true'); throw 1",
            "await z.apply([{path: 'a', find: '1', replacement: '2'}], {verify: {command: ['false']}})",
        ] {
            ws.error(cell);
            let after = ws.tree();
            let lost: Vec<_> = before
                .iter()
                .filter(|(path, was)| after.get(*path) != Some(was))
                .map(|(path, _)| path)
                .collect();
            // What is ignored is passed through: only such files may be changed, and none may be gone.
            assert!(
                before.keys().all(|path| after.contains_key(path)),
                "{files:?}\n{cell}\n{lost:?}"
            );
        }
    }
    let ws = Workspace::new(&[("cfg/ign", "cfg\nb\n"), ("b/kept", "x")]);
    symlink("cfg/ign", ws.root.path().join(".gitignore")).unwrap();
    let before = ws.tree();
    ws.error("await z.run('true'); throw 1");
    assert_eq!(ws.tree(), before);
}
