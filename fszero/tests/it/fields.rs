//! What the engine does to a tree, case by case; cases of pure text are scenario folders.

use zero_contracts::files::ReadLog;
use zero_contracts::{CancelToken, ErrorKind, FileEngine};

use crate::support::*;

#[test]
fn a_commit_changes_the_tree_and_a_dropped_transaction_does_not() {
    let f = Fixture::new();
    f.write("a", "one").write("d/b", "two\n").chmod("d/b", 0o755);
    let before = f.image();
    let mut t = f.begin();
    let receipts = stage(
        &mut *t,
        r#"[{"path": "a", "find": "one", "replacement": "$&$1"}, {"path": "d/b", "remove": true, "expect": "any"},
        {"path": "new/deep/c", "create": "c"}, {"move": ["d", "e"]}, {"symlink": ["a", "l"]}, {"mkdir": "empty"}]"#,
    )
    .unwrap();
    assert!(receipts.len() >= 6);
    assert_eq!(f.image(), before, "staging changes nothing");
    let view = t.view();
    assert_eq!(&*view.read(&path("l"), &CancelToken::new()).unwrap().bytes, b"$&$1");
    assert!(view.entry(&path("d")).unwrap().is_none() && view.entry(&path("e/b")).unwrap().is_none());
    drop(t);
    assert_eq!(f.image(), before);
    f.commit(r#"[{"path": "a", "find": "one", "replacement": "$&$1"}, {"path": "new/deep/c", "create": "c"}, {"move": ["d", "e"]},
        {"path": "e/b", "find": "two", "replacement": "zwei"}, {"symlink": ["a", "l"]}, {"mkdir": "empty"}, {"path": "a", "mode": 384}]"#).unwrap();
    let after = f.image();
    assert_eq!(after[&b"a"[..]], Held::File(b"$&$1".to_vec(), 0o600));
    assert_eq!(after[&b"e/b"[..]], Held::File(b"zwei\n".to_vec(), 0o755));
    assert_eq!(after[&b"l"[..]], Held::Symlink(b"a".to_vec()));
    assert!(after.keys().all(|k| !k.starts_with(b".fszero")) && !after.contains_key(&b"d"[..]));
    assert!(!f.reopen().has_open_transaction().unwrap());
}

#[test]
fn a_guard_that_fails_stages_nothing() {
    let f = Fixture::new();
    f.write("a", "a\n").write("b", "b\n");
    let error = f.refuse(
        r#"[{"path": "a", "find": "a", "replacement": "x"}, {"path": "b", "find": "nowhere", "replacement": "x"}]"#,
    );
    assert_eq!(error.kind, ErrorKind::Conflict);
    let error = f.refuse(r#"[{"path": "a", "content": "x"}]"#);
    assert!(error.detail.contains("read it first"), "{error}");
    let mut reads = ReadLog::new();
    reads.note(
        path("a"),
        f.engine.live().read(&path("a"), &CancelToken::new()).unwrap().digest,
    );
    let mut t = f.begin();
    t.stage(
        &operations(r#"[{"path": "a", "content": "x"}, {"path": "a", "lines": [1, 1], "content": "y"}]"#),
        &reads,
        &CancelToken::new(),
    )
    .unwrap();
    f.write("a", "other");
    let failure = finish(&mut *t).unwrap_err();
    assert_eq!(failure.error.kind, ErrorKind::Conflict);
    assert_eq!(failure.restoration.conflicts.len(), 1);
    let theirs = failure.restoration.conflicts[0].theirs.unwrap();
    assert_eq!(f.engine.objects().get(&theirs.digest).unwrap(), b"other");
    assert_eq!(f.bytes("a"), b"other");
}

#[test]
fn materialised_effects_are_taken_back() {
    let f = Fixture::new();
    f.write("a", "a")
        .write("gone", "g")
        .chmod("gone", 0o600)
        .write("d/x", "x");
    let before = f.image();
    let mut t = f.begin();
    let mark = t.savepoint();
    stage(&mut *t, r#"[{"path": "a", "find": "a", "replacement": "b"}, {"path": "gone", "remove": true, "expect": "any"}, {"move": ["d", "e"]}, {"path": "n/m", "create": "n"}]"#).unwrap();
    t.materialize(zero_contracts::Epoch(1), &CancelToken::new()).unwrap();
    assert_eq!(f.bytes("a"), b"b");
    assert_eq!(f.bytes("e/x"), b"x");
    t.roll_back_to(mark, &CancelToken::new()).unwrap();
    assert_eq!(f.image(), before);
    stage(&mut *t, r#"[{"path": "a", "find": "a", "replacement": "c"}]"#).unwrap();
    t.materialize(zero_contracts::Epoch(1), &CancelToken::new()).unwrap();
    let restoration = t.restore().unwrap();
    assert_eq!(restoration.restored, [path("a")]);
    assert_eq!(f.image(), before);
    assert!(!f.engine.has_open_transaction().unwrap());
}
