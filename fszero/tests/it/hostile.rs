//! Commands that go for the engine's own traces, and for what restoration needs.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use fszero::FsZero;
use fszero::seam::{Call, Gate};
use zero_contracts::{CancelToken, Epoch, FileEngine};

use crate::support::*;

fn token() -> CancelToken {
    CancelToken::new()
}

fn shell(root: &Path, script: &str) {
    let status = Command::new("sh")
        .arg("-c")
        .arg(script)
        .current_dir(root)
        .status()
        .unwrap();
    assert!(status.success(), "{script}");
}

/// Refuses to move anything into or out of the tree as if the store were on another file system.
struct OtherFileSystem;

impl Gate for OtherFileSystem {
    fn before(&self, call: &Call<'_>) -> std::io::Result<()> {
        match call {
            Call::Rename { old, new, .. } if old.starts_with(b".fszero-") != new.starts_with(b".fszero-") => {
                Err(std::io::Error::from_raw_os_error(18)) // EXDEV
            }
            _ => Ok(()),
        }
    }
}

const CHANGES: &str = r#"[{"path": "a.txt", "content": "bye\n", "expect": "any"},
    {"path": "large", "content": "short", "expect": "any"}, {"path": "gone", "remove": true, "expect": "any"},
    {"path": "l", "remove": true}, {"path": "empty", "remove": true}, {"move": ["m", "gone"]},
    {"path": "new/x", "create": "x"}, {"path": "a.txt", "mode": 448}]"#;

fn workspace(other: bool) -> Fixture {
    let f = Fixture::with(scratch(), |config| {
        if other {
            config.gate(Arc::new(OtherFileSystem))
        } else {
            config
        }
    });
    f.write("a.txt", "hello\n")
        .write("large", "0123456789".repeat(10_000))
        .write("gone", "gone\n")
        .write("m", "moved\n")
        .link("a.txt", "l")
        .chmod("gone", 0o755);
    std::fs::create_dir(f.at("empty")).unwrap();
    f.chmod("empty", 0o750);
    f
}

/// Everything that destroys, forges or publishes what waits beside the tree, if it can be found from there.
const ATTACKS: &[&str] = &[
    "for f in .fszero*/*; do echo EVIL > \"$f\"; done; rm -f '.fszero*/*'; rmdir '.fszero*' 2>/dev/null; true",
    "find . -type f -exec sed -i s/e/E/ {} +",
    "rm -rf .fszero*",
    "chmod -R 700 .",
    "rm -rf ./* ./.f*",
    "git init -q . && git add -A && git -c user.name=n -c user.email=e commit -qm all",
    "mkdir .fszero-0123456789abcdef && echo x > .fszero-0123456789abcdef/0",
];

#[test]
fn nothing_a_command_does_in_the_tree_reaches_what_restoration_needs() {
    for other in [false, true] {
        for attack in ATTACKS {
            for recovered in [false, true] {
                let what = format!("{attack} (other file system: {other}, recovered: {recovered})");
                let f = workspace(other);
                let old = f.image();
                let mut t = f.begin();
                stage(&mut *t, CHANGES).unwrap();
                t.begin_capture(Epoch(1), &token()).unwrap();
                let left = std::fs::read_dir(f.root()).unwrap();
                let left = left.filter(|e| {
                    e.as_ref()
                        .unwrap()
                        .file_name()
                        .as_encoded_bytes()
                        .starts_with(b".fszero")
                });
                assert_eq!(left.count(), 0, "{what}: something of ours is in a command's sight");
                let _ = Command::new("sh")
                    .arg("-c")
                    .arg(attack)
                    .current_dir(f.root())
                    .status()
                    .unwrap();
                if recovered {
                    std::mem::forget(t);
                    f.reopen().recover(Epoch(2), &token()).unwrap();
                } else {
                    t.end_capture(&token()).unwrap();
                    let done = t.restore().unwrap();
                    assert_eq!(done.conflicts, [], "{what}");
                }
                let new = f.image();
                let mine = |image: &Image| -> Image {
                    // The repository that the command made is `.git` as one unit; its objects stay.
                    image
                        .iter()
                        .filter(|(p, _)| !p.starts_with(b".git"))
                        .map(|(p, h)| (p.clone(), h.clone()))
                        .collect()
                };
                assert_eq!(mine(&new), mine(&old), "{what}");
                assert!(parked(f.dir.path()).is_empty(), "{what}: left in the store");
            }
        }
    }
}

fn parked(dir: &Path) -> Vec<std::path::PathBuf> {
    let parked = std::fs::read_dir(dir.join("store/parked")).unwrap();
    parked.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn preimages_that_were_changed_even_in_the_store_are_made_anew() {
    for attack in [
        "for f in */*; do [ -d $f ] || echo EVIL > \"$f\"; done",
        "chmod -R 755 .",
        "rm -rf */*",
        "for d in *; do rm -rf $d/*; mkdir $d/0 $d/1; echo x > $d/0/x; done",
    ] {
        let f = workspace(false);
        let old = f.image();
        let mut t = f.begin();
        stage(&mut *t, CHANGES).unwrap();
        t.materialize(Epoch(1), &token()).unwrap();
        shell(&f.dir.path().join("store/parked"), attack);
        assert_eq!(t.restore().unwrap().conflicts, [], "{attack}");
        assert_eq!(f.image(), old, "{attack}");
    }
}

#[test]
fn committed_work_leaves_nothing_parked_and_unsettled_work_calls_for_recovery() {
    let f = workspace(false);
    let mut t = f.begin();
    stage(&mut *t, CHANGES).unwrap();
    t.begin_capture(Epoch(1), &token()).unwrap();
    t.end_capture(&token()).unwrap();
    finish(&mut *t).unwrap();
    assert!(parked(f.dir.path()).is_empty());
    assert!(!f.engine.has_open_transaction().unwrap());

    /// Fails every removal: what death between the commit record and tidying up leaves.
    struct NoRemoval;
    impl Gate for NoRemoval {
        fn before(&self, call: &Call<'_>) -> std::io::Result<()> {
            match call {
                Call::Unlink { name, .. } if name.first().is_some_and(u8::is_ascii_digit) => {
                    Err(std::io::Error::from_raw_os_error(5))
                }
                _ => Ok(()),
            }
        }
    }
    for materialized in [false, true] {
        let f = Fixture::with(scratch(), |config| config.gate(Arc::new(NoRemoval)));
        f.write("a", "1");
        let mut t = f.begin();
        stage(&mut *t, r#"[{"path": "a", "content": "2", "expect": "any"}]"#).unwrap();
        if materialized {
            t.materialize(Epoch(1), &token()).unwrap();
        }
        finish(&mut *t).unwrap();
        let next: FsZero = f.reopen();
        assert!(next.has_open_transaction().unwrap(), "nobody would tidy up");
        next.recover(Epoch(2), &token()).unwrap();
        assert!(!next.has_open_transaction().unwrap());
        assert_eq!((f.image().len(), f.bytes("a")), (1, b"2".to_vec()));
        assert!(parked(f.dir.path()).is_empty());
    }
}

#[test]
fn names_that_only_look_like_ours_are_like_any_other() {
    let f = Fixture::new();
    f.write("a", "1");
    let old = f.image();
    let mut t = f.begin();
    t.begin_capture(Epoch(1), &token()).unwrap();
    f.write(".fszero-x", "1")
        .write(".fszero-0123456789abcdef/0", "2")
        .write(".fszero", "3");
    let captured = t.end_capture(&token()).unwrap();
    assert_eq!(captured.receipts.len(), 4);
    assert_eq!(t.restore().unwrap().conflicts, []);
    assert_eq!(f.image(), old);
    f.write(".fszero-x", "1");
    assert_eq!(f.engine.live().list(&path(".")).unwrap().len(), 2);
    f.commit(r#"[{"path": ".fszero-x", "remove": true, "expect": "any"}]"#)
        .unwrap();
    assert_eq!(f.image(), old);
}

/// Ways to change what the rules are before a command runs, in a tree that [`ruled`] made.
const RULE_CHANGES: &[&str] = &[
    r#"[{"path": ".gitignore", "create": "src\n*\n"}]"#,
    r#"[{"path": "src/.gitignore", "content": "*\n", "expect": "any"}]"#,
    r#"[{"path": "src/.gitignore", "remove": true, "expect": "any"}, {"path": ".ignore", "create": "src\n"}]"#,
    r#"[{"move": ["src/.gitignore", ".gitignore"]}, {"path": ".ignore", "create": "*\n"}]"#,
    r#"[{"path": ".git/info/exclude", "content": "src\n", "expect": "any"}]"#,
];

#[test]
fn rules_that_the_cell_changes_itself_take_no_protection_away() {
    for (n, change) in RULE_CHANGES.iter().enumerate() {
        for recovered in [false, true] {
            let f = Fixture::new();
            f.write("src/m.rs", "fn main() {}\n")
                .write("src/.gitignore", "*.log\n")
                .write("top", "t")
                .write(".git/info/exclude", "*.tmp\n");
            let old = f.image();
            let mut t = f.begin();
            stage(&mut *t, change).unwrap();
            // A first command does what the cell could have staged; the second destroys.
            t.begin_capture(Epoch(1), &token()).unwrap();
            shell(&f.root(), "echo src >> .ignore");
            t.end_capture(&token()).unwrap();
            t.begin_capture(Epoch(1), &token()).unwrap();
            shell(
                &f.root(),
                "rm src/m.rs; echo x > top; echo y > src/new; echo z > src/x.log",
            );
            if recovered {
                std::mem::forget(t);
                f.reopen().recover(Epoch(2), &token()).unwrap();
            } else {
                t.end_capture(&token()).unwrap();
                assert_eq!(t.restore().unwrap().conflicts, [], "{change}");
            }
            let mut new = f.image();
            // What the old rules ignored passes through.
            assert!(new.remove(&b"src/x.log"[..]).is_some(), "{n}");
            assert_eq!(new, old, "{change} (recovered: {recovered})");
        }
    }
}
