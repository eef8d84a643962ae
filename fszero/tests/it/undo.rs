//! Undo: what a committed cell did is taken back, and what others changed since stays.

use zero_contracts::{CancelToken, ErrorKind, FileEngine};

use crate::support::*;

fn token() -> CancelToken {
    CancelToken::new()
}

#[test]
fn an_undo_brings_back_what_was_and_leaves_what_others_changed() {
    let f = Fixture::new();
    f.write("a", "a\n".repeat(20_000))
        .write("b", "b\n")
        .write("d/x", "x")
        .chmod("d/x", 0o600)
        .link("b", "l");
    let before = f.image();
    let mut t = f.begin();
    stage(&mut *t, r#"[{"path": "a", "lines": [1, 1], "content": "A", "expect": "any"}, {"path": "b", "find": "b", "replacement": "B"},
        {"move": ["d", "e"]}, {"path": "e/x", "remove": true, "expect": "any"}, {"path": "n/m", "create": "m"}, {"path": "l", "remove": true}]"#).unwrap();
    let cell = finish(&mut *t).unwrap().cell;
    let after = f.image();
    let mut undo = f.engine.revert(&cell, None, fresh(), &token()).unwrap();
    assert_eq!(undo.conflicts, []);
    let reversal = finish(&mut *undo.transaction).unwrap().cell;
    assert_eq!(f.image(), before);
    let mut redo = f.engine.revert(&reversal, None, fresh(), &token()).unwrap();
    finish(&mut *redo.transaction).unwrap();
    assert_eq!(f.image(), after);
    // Only a part; and where somebody else went on, the path is left with both differences told.
    f.write("b", "B\nmore\n");
    let mut part = f
        .engine
        .revert(&cell, Some(&[path("n"), path("b")]), fresh(), &token())
        .unwrap();
    assert_eq!(part.conflicts.len(), 1);
    assert!(
        part.conflicts[0].detail.contains("+more") && part.conflicts[0].detail.contains("-b"),
        "{}",
        part.conflicts[0].detail
    );
    finish(&mut *part.transaction).unwrap();
    assert_eq!(f.bytes("b"), b"B\nmore\n");
    assert!(!f.at("n").exists() && f.at("e").exists());
    let missing = zero_contracts::CellId::new("unknown").unwrap();
    assert_eq!(
        f.engine.revert(&missing, None, fresh(), &token()).err().unwrap().kind,
        ErrorKind::NotFound
    );
}

#[test]
fn an_undo_of_what_is_back_already_does_nothing_and_has_no_conflict() {
    let f = Fixture::new();
    f.write("a", "a\n").write("b", "b\n").write("d/x", "x").write("m", "m");
    let before = f.image();
    let mut t = f.begin();
    // Paths that are changed more than once, moved after they were changed, made and removed.
    stage(
        &mut *t,
        r#"[{"path": "a", "find": "a", "replacement": "A"}, {"path": "a", "find": "A", "replacement": "AA"},
        {"path": "m", "find": "m", "replacement": "M"}, {"move": ["m", "moved"]}, {"move": ["d", "e"]},
        {"path": "b", "remove": true, "expect": "any"}, {"path": "n/o", "create": "o"}]"#,
    )
    .unwrap();
    let cell = finish(&mut *t).unwrap().cell;
    let undo = |paths: Option<&[&str]>| {
        let paths: Option<Vec<_>> = paths.map(|paths| paths.iter().map(|at| path(at)).collect());
        let mut undo = f.engine.revert(&cell, paths.as_deref(), fresh(), &token()).unwrap();
        let empty = undo.transaction.is_empty();
        finish(&mut *undo.transaction).unwrap();
        (undo.conflicts, empty)
    };
    // First a part, then the rest, then once more; and what somebody put back by hand is back as well.
    assert_eq!(undo(Some(&["a", "n"])), (vec![], false));
    f.write("b", "b\n");
    assert_eq!(undo(None), (vec![], false));
    assert_eq!(f.image(), before);
    assert_eq!(undo(None), (vec![], true));
    assert_eq!(undo(Some(&["moved", "b", "e"])), (vec![], true));
    assert_eq!(f.image(), before);
    // A path that is neither what the transaction left nor what it found is a conflict still.
    f.write("a", "A\n");
    let (conflicts, empty) = undo(None);
    assert_eq!((conflicts.len(), empty), (1, true));
    assert_eq!(f.bytes("a"), b"A\n");
}
