//! Undo: whole, by path, dry, after everything that can happen to a file since, and of an undo.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use zero_contracts::edit::{EditReceipt, ReceiptStatus};
use zero_contracts::response::{Disposition, Outcome};
use zero_contracts::{ErrorKind, Handle, UndoOptions, UndoReport};
use zerostack::ZeroKernel;

use crate::hub_support::{Tree, Workspace, config, differences};

/// Runs a cell that must commit something; returns its event.
#[track_caller]
fn committed(ws: &Workspace, cell: &str) -> Handle {
    let response = ws.run(cell);
    assert_eq!(response.outcome, Outcome::Completed, "{:#?}", response.error);
    assert_eq!(response.effects.disposition, Disposition::Committed);
    response.event.unwrap()
}

#[track_caller]
fn undo(ws: &Workspace, event: &Handle) -> UndoReport {
    ws.kernel.undo(event, &UndoOptions::default()).unwrap()
}

#[track_caller]
fn same(given: &Tree, wanted: &Tree) {
    let differences = differences(given, wanted);
    assert!(differences.is_empty(), "{differences:#?}");
}

/// One cell of each kind of change, through `z` and through a command.
const CELLS: [&str; 4] = [
    "await z.edit('src/a', {find: 'one', replacement: 'ONE'}); await z.edit('new/deep/b', {create: 'b'})",
    "await z.apply([{move: ['d', 'moved/d']}, {path: 'gone', remove: true, expect: 'any'}, {symlink: ['src/a', 'link']}, {path: 'run.sh', mode: 0o755}, {mkdir: 'empty'}])",
    "await z.run('rm -r d; mv src sources; echo more >> sources/a; chmod 700 run.sh; mkdir -p made/deep; ln -s nowhere made/link')",
    "await z.edit('src/a', {content: 'whole\\n'}, {expect: 'any'}); await z.run('cp src/a copy; rm gone'); await z.edit('copy', {find: 'whole', replacement: 'part'})",
];

fn workspace() -> Workspace {
    let ws = Workspace::new(&[
        ("src/a", "one\ntwo\nthree\n"),
        ("d/x", "x"),
        ("d/e/y", "y"),
        ("gone", "gone\n"),
        ("run.sh", "#!/bin/sh\n"),
    ]);
    fs::create_dir(ws.root.path().join("d/hollow")).unwrap();
    ws
}

#[test]
fn an_undo_gives_back_the_tree_and_its_own_undo_the_change() {
    for cell in CELLS {
        let ws = workspace();
        let before = ws.tree();
        let event = committed(&ws, cell);
        let after = ws.tree();
        let dry = ws
            .kernel
            .undo(
                &event,
                &UndoOptions {
                    dry_run: true,
                    ..UndoOptions::default()
                },
            )
            .unwrap();
        assert!(dry.event.is_none() && dry.disposition == Disposition::None);
        same(&ws.tree(), &after);

        let report = undo(&ws, &event);
        assert_eq!(
            (report.disposition, &report.conflicts, report.state_undone),
            (Disposition::Committed, &Vec::new(), false),
            "{cell}"
        );
        // A dry run tells the same, but that it is done.
        let done = |receipt: EditReceipt| EditReceipt {
            status: ReceiptStatus::Committed,
            ..receipt
        };
        let told: Vec<_> = dry.receipts.into_iter().map(done).collect();
        assert_eq!(report.receipts, told, "{cell}");
        same(&ws.tree(), &before);
        let report = undo(&ws, &report.event.unwrap());
        same(&ws.tree(), &after);
        undo(&ws, &report.event.unwrap());
        same(&ws.tree(), &before);
    }
}

#[test]
fn turns_are_undone_one_after_the_other_by_a_later_kernel() {
    let ws = workspace();
    let mut trees = vec![ws.tree()];
    let mut events = Vec::new();
    for cell in [
        CELLS[0],
        CELLS[1],
        "await z.run('echo 4 >> src/a; mv moved/d/x src/x')",
        "await z.edit('src/a', {find: '4', replacement: 'four'})",
    ] {
        events.push(committed(&ws, cell));
        trees.push(ws.tree());
    }
    let later = ZeroKernel::open(config(ws.root.path(), ws.store.path())).unwrap();
    for (event, before) in events.iter().zip(&trees).rev() {
        let report = later.undo(event, &UndoOptions::default()).unwrap();
        assert!(report.conflicts.is_empty(), "{report:#?}");
        same(&ws.tree(), before);
    }
}

#[test]
fn a_dry_run_shows_the_differences() {
    let ws = workspace();
    let event = committed(&ws, CELLS[0]);
    let options = UndoOptions {
        dry_run: true,
        ..UndoOptions::default()
    };
    let report = ws.kernel.undo(&event, &options).unwrap();
    let receipt = report
        .receipts
        .iter()
        .find(|receipt| receipt.path.to_string() == "src/a")
        .unwrap();
    let diff = &receipt.diff;
    assert!(diff.contains("-ONE\n") && diff.contains("+one\n"), "{diff}");
    assert_eq!(ws.kernel.log(10).unwrap().len(), 1);
}

#[test]
fn an_undo_by_path_leaves_the_rest() {
    let ws = workspace();
    let event = committed(
        &ws,
        "await z.edit('src/a', {find: 'one', replacement: 'ONE'}); await z.edit('gone', {remove: true}, {expect: 'any'}); await z.run('echo n > n')",
    );
    let options = UndoOptions {
        paths: Some(vec!["gone".parse().unwrap(), "n".parse().unwrap()]),
        dry_run: false,
    };
    let report = ws.kernel.undo(&event, &options).unwrap();
    let paths: Vec<_> = report.receipts.iter().map(|receipt| receipt.path.to_string()).collect();
    assert_eq!(paths, ["gone", "n"]);
    let committed = |receipt: &EditReceipt| receipt.status == ReceiptStatus::Committed;
    assert!(report.receipts.iter().all(committed), "{report:#?}");
    assert!(ws.has("gone") && !ws.has("n"));
    assert!(ws.file("src/a").starts_with("ONE"));
    // What was left can follow.
    let options = UndoOptions {
        paths: Some(vec!["src".parse().unwrap()]),
        dry_run: false,
    };
    ws.kernel.undo(&event, &options).unwrap();
    assert!(ws.file("src/a").starts_with("one"));
}

#[test]
fn an_undo_by_a_path_that_the_cell_did_not_change_is_refused_and_names_those_it_did() {
    let ws = workspace();
    let event = committed(
        &ws,
        "await z.edit('src/a', {find: 'one', replacement: 'ONE'}); await z.apply([{move: ['d', 'moved/d']}])",
    );
    let with = |paths: &[&str], dry_run| UndoOptions {
        paths: Some(paths.iter().map(|path| path.parse().unwrap()).collect()),
        dry_run,
    };
    for (paths, named) in [
        (["gone", "src"], "gone"),
        (["src/a", "src/a/b"], "src/a/b"),
        (["sr", "d"], "sr"),
    ] {
        for dry_run in [true, false] {
            let error = ws.kernel.undo(&event, &with(&paths, dry_run)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidInput);
            assert!(error.detail.contains(&format!("`{named}`")), "{error}");
            assert!(error.accepted.contains(&"src/a".to_owned()), "{error:?}");
        }
    }
    assert!(ws.file("src/a").starts_with("ONE"));
    for path in ["src", "moved/d"] {
        assert_eq!(ws.kernel.undo(&event, &with(&[path], false)).unwrap().conflicts, []);
    }
    assert!(ws.file("src/a").starts_with("one") && ws.has("d/x"));
}

#[test]
fn what_a_person_changed_since_is_kept_and_shown_from_three_sides() {
    let ws = workspace();
    let event = committed(
        &ws,
        "await z.edit('src/a', {find: 'one', replacement: 'ONE'}); await z.edit('gone', {content: 'changed\\n'}, {expect: 'any'})",
    );
    let path = ws.root.path().join("src/a");
    fs::write(&path, "ONE\ntwo\nthree by hand\n").unwrap();
    let report = undo(&ws, &event);
    let [conflict] = report.conflicts.as_slice() else {
        panic!("{report:#?}")
    };
    assert_eq!(conflict.path, "src/a");
    for part in ["-one\n", "+ONE\n", "-three\n", "+three by hand\n"] {
        assert!(conflict.detail.contains(part), "{part}: {}", conflict.detail);
    }
    let objects = ws.kernel.objects();
    assert_eq!(
        objects.get(&conflict.ours.unwrap().digest).unwrap(),
        b"one\ntwo\nthree\n"
    );
    assert_eq!(
        objects.get(&conflict.theirs.unwrap().digest).unwrap(),
        b"ONE\ntwo\nthree by hand\n"
    );
    // The rest was taken back.
    assert_eq!(
        (ws.file("src/a").as_str(), ws.file("gone").as_str()),
        ("ONE\ntwo\nthree by hand\n", "gone\n")
    );
    // With the person's change gone, the undo that was left out works.
    fs::write(&path, "ONE\ntwo\nthree\n").unwrap();
    let options = UndoOptions {
        paths: Some(vec!["src/a".parse().unwrap()]),
        dry_run: false,
    };
    assert!(ws.kernel.undo(&event, &options).unwrap().conflicts.is_empty());
    assert_eq!(ws.file("src/a"), "one\ntwo\nthree\n");
}

#[test]
fn a_mode_or_a_removal_since_is_a_conflict_too() {
    let ws = workspace();
    let event = committed(
        &ws,
        "await z.edit('src/a', {find: 'one', replacement: 'ONE'}); await z.edit('run.sh', {mode: 0o755})",
    );
    fs::remove_file(ws.root.path().join("src/a")).unwrap();
    fs::set_permissions(ws.root.path().join("run.sh"), fs::Permissions::from_mode(0o700)).unwrap();
    let report = undo(&ws, &event);
    assert_eq!(
        (report.conflicts.len(), report.disposition, report.event),
        (2, Disposition::None, None),
        "{report:#?}"
    );
    assert!(!ws.has("src/a"));
}

#[test]
fn only_what_was_committed_can_be_undone_and_facts_stay() {
    let ws = workspace();
    let nothing = ws.run("return 1").event.unwrap();
    assert_eq!(
        ws.kernel.undo(&nothing, &UndoOptions::default()).unwrap_err().kind,
        ErrorKind::InvalidInput
    );
    let blob = Handle::blob(nothing.digest);
    assert_eq!(
        ws.kernel
            .undo(&blob, &UndoOptions::default())
            .unwrap_err()
            .path
            .as_deref(),
        Some("event")
    );
    let unknown = Handle::event(zero_contracts::Digest::of(b"?"));
    assert_eq!(
        ws.kernel.undo(&unknown, &UndoOptions::default()).unwrap_err().kind,
        ErrorKind::NotFound
    );

    let event = committed(
        &ws,
        "await z.edit('gone', {remove: true}, {expect: 'any'}); await z.state.set('k', 1)",
    );
    let report = undo(&ws, &event);
    assert!(!report.state_undone && ws.has("gone"));
    assert_eq!(ws.value("return z.state.get('k')"), 1);
    // A second undo finds that all is back.
    let again = undo(&ws, &event);
    assert_eq!((again.disposition, again.conflicts.len()), (Disposition::None, 0));
}
