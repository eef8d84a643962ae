//! What recovery does with what a loss of power left: rolling forward, and staging directories that the journal does not
//! know. The power losses themselves are in `losses`; here somebody else acts before recovery.

use std::path::Path;

use fszero::FsZero;
use zero_contracts::files::{Durability, RecoveredOutcome};
use zero_contracts::{CancelToken, Digest, Epoch, FileEngine};

use crate::gates::{Injector, Plan, held};
use crate::losses::written;
use crate::support::*;

/// A workspace in which a commit of an edit of `a` and of a new file `n` was recorded, and its renames were lost.
fn lost_renames() -> tempfile::TempDir {
    let edits = r#"[{"path": "a", "find": "one", "replacement": "two"}, {"path": "n", "create": "new\n"}]"#;
    // From the end back to the last step at which the record is durable and the renames are not.
    for last in (0..80).rev() {
        let gate = Injector::with_disk();
        let dir = scratch();
        std::fs::create_dir_all(dir.path().join("root")).unwrap();
        std::fs::write(dir.path().join("root/a"), "one\n").unwrap();
        let f = Fixture::with(dir, |config| config.durability(Durability::Power).gate(gate.clone()));
        let disk = gate.disk.as_ref().unwrap();
        held(disk).load(&[&f.root(), &f.dir.path().join("store")]);
        let mut transaction = f.begin();
        stage(&mut *transaction, edits).unwrap();
        gate.arm(Plan::Die(last));
        let _ = finish(&mut *transaction);
        let after = written(&held(disk).after_power_loss(&mut || false));
        let recorded = !reopen(after.path()).commits_after(0).unwrap().is_empty();
        if recorded && std::fs::read(after.path().join("root/a")).unwrap() == b"one\n" {
            return after;
        }
    }
    panic!("the record is never durable before the renames");
}

fn reopen(dir: &Path) -> FsZero {
    FsZero::open(config(dir)).unwrap()
}

#[test]
fn a_recorded_commit_is_rolled_forward() {
    let dir = lost_renames();
    let engine = reopen(dir.path());
    assert!(engine.has_open_transaction().unwrap());
    let recovered = engine.recover(Epoch(2), &CancelToken::new()).unwrap();
    assert!(matches!(recovered[0].outcome, RecoveredOutcome::Committed(_)));
    let image = image(&dir.path().join("root"));
    assert_eq!(image.keys().collect::<Vec<_>>(), [&b"a"[..], b"n"]);
    assert_eq!(std::fs::read(dir.path().join("root/a")).unwrap(), b"two\n");
    assert_eq!(std::fs::read(dir.path().join("root/n")).unwrap(), b"new\n");
}

#[test]
fn what_others_wrote_before_the_roll_forward_stays_and_the_committed_version_is_kept() {
    let dir = lost_renames();
    std::fs::write(dir.path().join("root/a"), "theirs\n").unwrap();
    std::fs::write(dir.path().join("root/n"), "theirs, too\n").unwrap();
    let engine = reopen(dir.path());
    engine.recover(Epoch(2), &CancelToken::new()).unwrap();
    assert_eq!(std::fs::read(dir.path().join("root/a")).unwrap(), b"theirs\n");
    assert_eq!(std::fs::read(dir.path().join("root/n")).unwrap(), b"theirs, too\n");
    assert_eq!(image(&dir.path().join("root")).len(), 2, "something is left over");
    for kept in [&b"two\n"[..], b"new\n"] {
        assert_eq!(engine.objects().get(&Digest::of(kept)).unwrap(), kept);
    }
}

#[test]
fn a_roll_forward_may_be_cut_off_anywhere() {
    for step in 0..24 {
        let dir = lost_renames();
        let gate = Injector::new();
        let engine = FsZero::open(config(dir.path()).durability(Durability::Power).gate(gate.clone())).unwrap();
        gate.arm(Plan::Die(step));
        let _ = engine.recover(Epoch(2), &CancelToken::new());
        reopen(dir.path()).recover(Epoch(3), &CancelToken::new()).unwrap();
        assert_eq!(
            std::fs::read(dir.path().join("root/a")).unwrap(),
            b"two\n",
            "step {step}"
        );
        assert_eq!(image(&dir.path().join("root")).len(), 2, "step {step}");
    }
}

#[test]
fn only_staging_directories_that_are_surely_ours_and_unused_go() {
    let f = Fixture::new();
    f.write("a", "one\n");
    f.commit(r#"[{"path": "a", "find": "one", "replacement": "two"}]"#)
        .unwrap();
    let id = std::fs::read_to_string(f.dir.path().join("store/id")).unwrap();
    let id = id.trim();
    // Of this store: a frame that the journal never got, and one that it gave to a record of another kind.
    let gone = [
        format!(".fszero-{id}000000ff"),
        format!(".fszero-{id}000000fe-idle"),
        format!(".fszero-{id}00000001"),
    ];
    // Of another store, and names that only look alike.
    let other = format!("{:08x}", u32::from_str_radix(id, 16).unwrap() ^ 1);
    let stays = [
        format!(".fszero-{other}000000ff"),
        ".fszero-notes".into(),
        format!(".fszero-{id}"),
    ];
    for name in gone.iter().chain(&stays) {
        f.write(&format!("{name}/0"), "displaced");
    }
    f.engine.recover(Epoch(2), &CancelToken::new()).unwrap();
    for name in &gone {
        assert!(!f.at(name).exists(), "{name} is left");
    }
    for name in &stays {
        assert_eq!(f.bytes(&format!("{name}/0")), b"displaced");
    }
}
