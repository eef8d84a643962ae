//! Commands that go for the engine's own traces, and for what restoration needs.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

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

/// What a failing cell's command may do to modes.
const MODES: &[&str] = &[
    "chmod 777 .",
    "chmod 700 .; chmod 1777 sub",
    "mkdir ro; echo 1 > ro/x; chmod 500 ro",
    "mkdir -p ro/in; echo 1 > ro/in/x; chmod 000 ro/in; chmod 500 ro",
    "chmod 555 .",
    "rm a.txt; chmod 555 .",
    "chmod 000 sub",
    "echo changed > sub/deep/x; chmod 000 sub/deep; chmod 000 sub",
    "rm sub/deep/x; touch sub/new; chmod 500 sub/deep; chmod 555 sub",
    "chmod 000 a.txt sub/deep/x; touch unread; chmod 000 unread",
    "chmod u+w locked; rm locked/x; touch locked/y; chmod u-w locked",
    "chmod 100 sub; chmod 000 .",
    "chmod 444 sub .",
];

fn modes_are_taken_back() {
    use std::os::unix::fs::PermissionsExt;
    for script in MODES {
        for edit in [false, true] {
            for how in ["restored", "unseen", "recovered"] {
                let what = format!("{script} (edit: {edit}, {how})");
                let f = Fixture::new();
                f.write("a.txt", "a").write("sub/deep/x", "x").write("locked/x", "l");
                f.chmod("locked", 0o555).chmod("sub", 0o750).chmod(".", 0o755);
                let old = f.image();
                let mut t = f.begin();
                if edit {
                    let edits = r#"[{"path": "a.txt", "content": "b", "expect": "any"},
                        {"path": "sub/deep/x", "remove": true, "expect": "any"}, {"path": "sub/deep/x", "create": "new"},
                        {"path": "sub/n/m", "create": "m"}]"#;
                    stage(&mut *t, edits).unwrap();
                }
                t.begin_capture(Epoch(1), &token()).unwrap();
                shell(&f.root(), script);
                if how == "recovered" {
                    std::mem::forget(t);
                    f.reopen()
                        .recover(Epoch(2), &token())
                        .unwrap_or_else(|e| panic!("{what}: {e}"));
                } else {
                    if how == "restored" {
                        t.end_capture(&token()).unwrap_or_else(|e| panic!("{what}: {e}"));
                    }
                    let done = t.restore().unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert_eq!(done.conflicts, [], "{what}");
                }
                let mode = std::fs::metadata(f.root()).unwrap().permissions().mode() & 0o7777;
                assert_eq!(mode, 0o755, "{what}: the root's own mode");
                let new = f.image();
                f.chmod("locked", 0o755);
                assert_eq!(new, old, "{what}");
                assert!(!f.reopen().has_open_transaction().unwrap(), "{what}");
            }
        }
    }
    // A commit leaves the modes as the command left them.
    let f = Fixture::new();
    f.write("sub/x", "x");
    let mut t = f.begin();
    t.begin_capture(Epoch(1), &token()).unwrap();
    shell(&f.root(), "echo y > sub/y; chmod 300 sub; chmod 711 .");
    assert_eq!(t.end_capture(&token()).unwrap().receipts.len(), 3);
    finish(&mut *t).unwrap();
    for (path, mode) in [("sub", 0o300), (".", 0o711)] {
        assert_eq!(
            std::fs::metadata(f.at(path)).unwrap().permissions().mode() & 0o7777,
            mode
        );
    }
    f.chmod("sub", 0o755);
    assert_eq!(f.bytes("sub/y"), b"y\n");
}

fn unreadable_files_are_kept_track_of() {
    let ordinary = std::fs::read_to_string("/proc/self/status")
        .unwrap()
        .lines()
        .all(|l| l != "Uid:\t0\t0\t0\t0");
    let f = Fixture::new();
    f.write("secret", "s").write("a", "1").chmod("secret", 0);
    let mut t = f.begin();
    t.begin_capture(Epoch(1), &token()).unwrap();
    shell(&f.root(), "echo 2 > a");
    assert_eq!(
        t.end_capture(&token()).unwrap().receipts.len(),
        1,
        "what nobody touched is no change"
    );
    assert_eq!(t.restore().unwrap().conflicts, []);
    assert_eq!(f.bytes("a"), b"1");
    // Its bytes were not kept: that is told where they are lost.
    let mut t = f.begin();
    t.begin_capture(Epoch(1), &token()).unwrap();
    shell(&f.root(), "rm -f secret; echo 2 > a");
    t.end_capture(&token()).unwrap();
    let done = t.restore().unwrap();
    if ordinary {
        assert_eq!(done.conflicts.len(), 1, "{done:?}");
        assert_eq!(done.conflicts[0].path, "secret");
    } else {
        assert_eq!(done.conflicts, []);
    }
    assert_eq!(f.bytes("a"), b"1");
}

fn restoration_claims_no_more_than_it_did() {
    // A directory that may not be read: nothing can be captured, and the edit that was published comes back.
    let f = Fixture::new();
    f.write("a", "1").write("closed/x", "x").chmod("closed", 0);
    let mut t = f.begin();
    stage(&mut *t, r#"[{"path": "a", "content": "2", "expect": "any"}]"#).unwrap();
    let begun = t.begin_capture(Epoch(1), &token());
    let done = t.restore().unwrap();
    assert_eq!((done.conflicts.len(), f.bytes("a")), (0, b"1".to_vec()), "{begun:?}");
    f.chmod("closed", 0o755);
    assert_eq!(f.image().len(), 3);
}

/// Recovery is cut off at every step, and the next one goes on.
fn modes_are_taken_back_in_spite_of_deaths() {
    for script in [
        "rm sub/deep/x; touch sub/new; chmod 500 sub/deep; chmod 000 sub; chmod 555 .",
        "mkdir -p ro/in; echo 1 > ro/in/x; chmod 000 ro/in a.txt; chmod 500 ro",
    ] {
        for step in 0.. {
            let gate = Arc::new(Mortal {
                other: false,
                left: AtomicI64::new(i64::MAX),
            });
            let f = Fixture::with(scratch(), |config| config.gate(gate.clone()));
            f.write("a.txt", "a")
                .write("sub/deep/x", "x")
                .chmod("sub", 0o750)
                .chmod(".", 0o755);
            let old = f.image();
            let mut t = f.begin();
            stage(&mut *t, r#"[{"path": "sub/deep/x", "content": "b", "expect": "any"}]"#).unwrap();
            t.begin_capture(Epoch(1), &token()).unwrap();
            shell(&f.root(), script);
            gate.left.store(step, Ordering::Relaxed);
            let survived = t.restore().is_ok();
            std::mem::forget(t);
            gate.left.store(i64::MAX, Ordering::Relaxed);
            f.engine
                .recover(Epoch(2), &token())
                .unwrap_or_else(|e| panic!("{script}, step {step}: {e}"));
            assert_eq!(f.image(), old, "{script}, step {step}");
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(
                std::fs::metadata(f.root()).unwrap().permissions().mode() & 0o7777,
                0o755,
                "{script}, step {step}"
            );
            if survived {
                assert!(step > 10);
                break;
            }
        }
    }
}

fn closed_directories_that_are_ignored_stop_nothing() {
    let f = Fixture::new();
    f.write(".gitignore", "data\n").write("data/in/x", "x").write("a", "1");
    f.chmod("data/in", 0).chmod("data", 0o500);
    let mut t = f.begin();
    t.begin_capture(Epoch(1), &token()).unwrap();
    shell(&f.root(), "echo 2 > a; chmod 000 data");
    assert_eq!(t.end_capture(&token()).unwrap().receipts.len(), 1);
    assert_eq!(t.restore().unwrap().conflicts, []);
    assert_eq!(f.bytes("a"), b"1");
    f.chmod("data", 0o755).chmod("data/in", 0o755);
    assert_eq!(f.bytes("data/in/x"), b"x");
}

#[test]
fn modes_are_taken_back_by_whoever_runs_this() {
    modes_are_taken_back();
    modes_are_taken_back_in_spite_of_deaths();
    unreadable_files_are_kept_track_of();
    restoration_claims_no_more_than_it_did();
    closed_directories_that_are_ignored_stop_nothing();
    a_directory_that_the_cell_closed_refuses_the_capture_and_is_taken_back();
}

fn a_directory_that_the_cell_closed_refuses_the_capture_and_is_taken_back() {
    let f = Fixture::new();
    f.write("d/x", "x").write("a", "1");
    let old = f.image();
    let mut t = f.begin();
    stage(
        &mut *t,
        r#"[{"path": "a", "find": "1", "replacement": "2"}, {"path": "d", "mode": 192}]"#,
    )
    .unwrap();
    let begun = t.begin_capture(Epoch(1), &token());
    let root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    assert_eq!(begun.is_ok(), root, "{begun:?}");
    if let Err(e) = begun {
        assert_eq!(
            (e.kind, e.path.as_deref()),
            (zero_contracts::ErrorKind::Denied, Some("d")),
            "{e}"
        );
        assert!(e.detail.contains("let its owner list it"), "{e}");
    }
    t.restore().unwrap();
    assert_eq!(f.image(), old);
    assert!(!f.engine.has_open_transaction().unwrap());
}

/// Runs the test above again as `nobody`, for root is let in everywhere.
#[test]
fn modes_are_taken_back_by_an_ordinary_user() {
    let me = std::fs::read_to_string("/proc/self/status").unwrap();
    if !me.lines().any(|line| line == "Uid:\t0\t0\t0\t0") {
        return; // The other test ran as one.
    }
    // The binary itself may lie where nobody else may look.
    let dir = scratch();
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let copy = dir.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"];
    let works = Command::new("setpriv").args(nobody).arg(&copy).arg("--list").output();
    if !works.as_ref().is_ok_and(|done| done.status.success()) {
        eprintln!("SKIPPED: nothing was tested as an ordinary user, for setpriv does not work here: {works:?}");
        return;
    }
    let done = Command::new("setpriv")
        .args(nobody)
        .arg(&copy)
        .args([
            "--exact",
            "--nocapture",
            "hostile::modes_are_taken_back_by_whoever_runs_this",
        ])
        .current_dir("/")
        .env_remove("NEXTEST")
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(done.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
fn a_capture_that_could_not_be_ended_is_still_taken_back() {
    let f = Fixture::new();
    f.write("a", "1").write("b", "1");
    let old = f.image();
    let mut t = f.begin();
    stage(&mut *t, r#"[{"path": "a", "content": "2", "expect": "any"}]"#).unwrap();
    t.begin_capture(Epoch(1), &token()).unwrap();
    shell(&f.root(), "echo 3 > b; rm a; echo new > c");
    let cancelled = token();
    cancelled.cancel();
    t.end_capture(&cancelled).unwrap_err();
    assert!(finish(&mut *t).is_err(), "nobody knows what would be committed");
    assert_eq!(f.image(), old);
    assert!(!f.engine.has_open_transaction().unwrap());
}

/// Writes into two files just before the second is exchanged: the publication is refused, and the first file is then no
/// longer what the cell left.
struct Meddler(std::path::PathBuf, AtomicBool);

impl Gate for Meddler {
    fn before(&self, call: &Call<'_>) -> std::io::Result<()> {
        match call {
            Call::Rename { new: b"b", .. } if !self.1.swap(true, Ordering::Relaxed) => {
                std::fs::write(self.0.join("root/b"), "theirs")?;
                std::fs::write(self.0.join("root/x"), "theirs")
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn what_a_refused_publication_left_behind_is_told_by_the_restoration() {
    let dir = scratch();
    let meddler = Arc::new(Meddler(dir.path().to_owned(), AtomicBool::new(false)));
    let f = Fixture::with(dir, |config| config.gate(meddler));
    f.write("b", "1");
    let mut t = f.begin();
    stage(
        &mut *t,
        r#"[{"path": "x", "create": "ours"}, {"path": "b", "content": "2", "expect": "any"}]"#,
    )
    .unwrap();
    t.materialize(Epoch(1), &token()).unwrap_err();
    let done = t.restore().unwrap();
    let paths: Vec<&str> = done.conflicts.iter().map(|conflict| &conflict.path[..]).collect();
    assert_eq!(paths, ["x"], "{done:?}");
    assert_eq!((f.bytes("b"), f.bytes("x")), (b"theirs".to_vec(), b"theirs".to_vec()));
}

#[test]
fn an_undo_knows_the_root_too() {
    use std::os::unix::fs::PermissionsExt;
    let f = Fixture::new();
    f.write("a", "1").chmod(".", 0o755);
    let mut t = f.begin();
    t.begin_capture(Epoch(1), &token()).unwrap();
    shell(&f.root(), "echo 2 > a; chmod 711 .");
    t.end_capture(&token()).unwrap();
    let cell = finish(&mut *t).unwrap().cell;
    let mut undo = f.engine.revert(&cell, None, fresh(), &token()).unwrap();
    assert_eq!(undo.conflicts, []);
    finish(&mut *undo.transaction).unwrap();
    assert_eq!(f.bytes("a"), b"1");
    assert_eq!(
        std::fs::metadata(f.root()).unwrap().permissions().mode() & 0o7777,
        0o755
    );
}

/// Dies (every call fails) after a number of calls, perhaps with the store on another file system.
struct Mortal {
    other: bool,
    left: AtomicI64,
}

impl Gate for Mortal {
    fn before(&self, call: &Call<'_>) -> std::io::Result<()> {
        if self.left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            return Err(std::io::Error::from_raw_os_error(5));
        }
        if self.other {
            OtherFileSystem.before(call)
        } else {
            Ok(())
        }
    }
}

#[test]
fn parking_and_taking_back_may_be_cut_off_anywhere() {
    for other in [false, true] {
        let mut step = 0;
        loop {
            let gate = Arc::new(Mortal {
                other,
                left: AtomicI64::new(i64::MAX),
            });
            let f = Fixture::with(scratch(), |config| config.gate(gate.clone()));
            f.write("a.txt", "hello\n")
                .write("gone", "gone\n")
                .write("m", "moved\n")
                .link("a.txt", "l");
            std::fs::create_dir(f.at("empty")).unwrap();
            f.write("large", "0123456789".repeat(10_000));
            let old = f.image();
            let mut t = f.begin();
            stage(&mut *t, CHANGES).unwrap();
            gate.left.store(step, Ordering::Relaxed);
            let mut survived = t.begin_capture(Epoch(1), &token()).is_ok();
            if survived {
                // A command that goes for everything it sees; taking back meets the rest of the steps.
                shell(&f.root(), "rm -rf .fszero* a.txt; echo evil > large");
            }
            survived = t.restore().is_ok() && survived;
            std::mem::forget(t);
            for die in [step / 2, i64::MAX] {
                let gate = Arc::new(Mortal {
                    other,
                    left: AtomicI64::new(i64::MAX),
                });
                let engine = FsZero::open(config(f.dir.path()).gate(gate.clone())).unwrap();
                gate.left.store(die, Ordering::Relaxed);
                let done = engine.recover(Epoch(2), &token());
                assert!(die < i64::MAX || done.is_ok(), "{done:?}");
            }
            assert_eq!(f.image(), old, "step {step}, other file system: {other}");
            assert!(parked(f.dir.path()).is_empty(), "step {step}");
            if survived {
                break;
            }
            step += 1;
        }
        println!("parking, other file system {other}: {step} steps");
        assert!(step > 30);
    }
}
