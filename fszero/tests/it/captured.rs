//! What commands did to the live tree: captured by comparing, and taken back.

use std::process::Command;

use zero_contracts::response::CaptureTier;
use zero_contracts::{CancelToken, Digest, Epoch, FileEngine};

use crate::support::*;

fn token() -> CancelToken {
    CancelToken::new()
}

fn sh(f: &Fixture, script: &str) {
    let done = Command::new("sh")
        .arg("-c")
        .arg(script)
        .current_dir(f.root())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

#[test]
fn what_a_command_did_is_captured_and_taken_back() {
    let f = Fixture::new();
    f.write(".gitignore", "out/\n")
        .write("a", "a")
        .write("d/b", "b")
        .chmod("d/b", 0o600)
        .write("out/o", "1")
        .link("a", "l");
    std::fs::create_dir(f.at("empty")).unwrap();
    let before = f.image();
    let mut t = f.begin();
    stage(&mut *t, r#"[{"path": "a", "find": "a", "replacement": "A"}]"#).unwrap();
    assert_eq!(t.begin_capture(Epoch(1), &token()).unwrap(), CaptureTier::Baseline);
    sh(
        &f,
        "printf x >> a; rm -r d empty; ln -sfn d l; mkdir -p n/m; printf new > n/m/f; chmod 755 n; printf 2 > out/o; printf 3 > out/p; printf '*\n' > .gitignore",
    );
    let captured = t.end_capture(&token()).unwrap();
    let paths: Vec<String> = captured.receipts.iter().map(|r| r.path.to_string()).collect();
    assert_eq!(
        paths,
        [".gitignore", "a", "d", "d/b", "empty", "l", "n", "n/m", "n/m/f"]
    );
    assert_eq!(captured.ignored_paths, 2);
    let a = t.receipts().into_iter().find(|r| r.path == path("a")).unwrap();
    assert_eq!(a.before.unwrap().digest, Some(Digest::of(b"a")));
    assert_eq!(a.after.unwrap().digest, Some(Digest::of(b"Ax")));
    let restoration = t.restore().unwrap();
    assert_eq!(restoration.conflicts, []);
    let mut restored = f.image();
    assert_eq!(restored.remove(&b"out/o"[..]), Some(Held::File(b"2".to_vec(), 0o644)));
    restored.remove(&b"out/p"[..]);
    let mut expected = before;
    expected.remove(&b"out/o"[..]);
    assert_eq!(restored, expected);
}

#[test]
fn a_command_that_outlives_its_cell_is_taken_back_by_recovery_and_can_be_undone_when_committed() {
    let f = Fixture::new();
    f.write("a", "a").write("d/b", "b".repeat(100_000));
    let before = f.image();
    let mut t = f.begin();
    t.begin_capture(Epoch(1), &token()).unwrap();
    sh(&f, "printf x > a; rm d/b; printf n > new");
    std::mem::forget(t); // the process died
    let engine = f.reopen();
    let recovered = engine.recover(Epoch(2), &token()).unwrap();
    assert_eq!(f.image(), before);
    let zero_contracts::files::RecoveredOutcome::Restored(restoration) = &recovered[0].outcome else {
        panic!()
    };
    let listed = restoration.conflicts.iter().find(|c| c.path == "a").unwrap();
    assert_eq!(
        engine.objects().get(&listed.theirs.unwrap().digest).unwrap(),
        b"x",
        "displaced bytes are kept"
    );

    let mut t = engine.begin(fresh()).unwrap();
    t.begin_capture(Epoch(2), &token()).unwrap();
    sh(&f, "printf x > a; rm d/b; printf n > new");
    t.end_capture(&token()).unwrap();
    let cell = t.commit(Epoch(2), seal(), &token()).unwrap().cell;
    assert_eq!(f.bytes("a"), b"x");
    let mut undo = engine.revert(&cell, None, fresh(), &token()).unwrap();
    assert_eq!(undo.conflicts, []);
    undo.transaction.commit(Epoch(2), seal(), &token()).unwrap();
    assert_eq!(f.image(), before);
}

#[test]
fn git_is_one_unit() {
    let f = Fixture::new();
    f.write("a", "a");
    sh(
        &f,
        "git init -q . && git config user.email a@b && git config user.name n && git add a && git commit -qm one",
    );
    let before = f.image();
    let mut t = f.begin();
    t.begin_capture(Epoch(1), &token()).unwrap();
    sh(
        &f,
        "printf b > a && git add a && git commit -qm two && git checkout -qb other",
    );
    assert!(!t.end_capture(&token()).unwrap().receipts.is_empty());
    assert_eq!(t.restore().unwrap().conflicts, []);
    assert_eq!(f.image(), before);
    sh(&f, "git fsck --strict && git diff --quiet && git status --porcelain");
}

/// Loose objects, packs and their modes come back as they were, by link or, from another file system, by copy; also by
/// recovery, and with the links of an earlier command in the store.
#[test]
fn a_repack_is_taken_back_object_by_object() {
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for on_another_file_system in [false, true] {
        let f = Fixture::with(scratch(), |mut config| {
            if on_another_file_system {
                config.store = elsewhere.path().join("store");
            }
            config
        });
        let commit = |n: u32| format!("echo {n} > a{n} && git add . && git commit -qm {n}");
        sh(
            &f,
            &format!(
                "git init -q . && git config user.email a@b && git config user.name n && git config gc.auto 0 && {} && git gc -q && {} && {}",
                commit(1),
                commit(2),
                commit(3)
            ),
        );
        let before = f.image();
        for script in [
            "git gc -q --prune=now",
            "git repack -q -a -d -f && echo 4 > a4 && git add .",
            "chmod 644 .git/objects/pack/*.pack && rm -rf .git/objects/??",
            "rm -rf .git/objects && mkdir -p .git/objects/pack && printf junk > .git/objects/pack/tmp_pack_x",
        ] {
            let mut t = f.begin();
            t.begin_capture(Epoch(1), &token()).unwrap();
            sh(&f, script);
            assert_ne!(f.image(), before, "{script}");
            t.end_capture(&token()).unwrap();
            // A second command in the same cell needs what the first one lost to stay retained.
            t.begin_capture(Epoch(1), &token()).unwrap();
            sh(&f, "rm -rf .git/objects/pack");
            t.end_capture(&token()).unwrap();
            assert_eq!(t.restore().unwrap().conflicts, [], "{script}");
            assert_eq!(f.image(), before, "{script}");
        }
        let mut t = f.begin();
        t.begin_capture(Epoch(1), &token()).unwrap();
        sh(&f, "git gc -q --prune=now");
        std::mem::forget(t); // the process died
        f.engine.recover(Epoch(2), &token()).unwrap();
        assert_eq!(f.image(), before);
        sh(&f, "git fsck --strict");
    }
}

#[test]
fn above_the_limits_nothing_is_claimed() {
    let f = Fixture::with(scratch(), |mut config| {
        config.capture_files = 3;
        config
    });
    for i in 0..5 {
        f.write(&format!("f{i}"), "x");
    }
    let mut t = f.begin();
    assert_eq!(
        t.begin_capture(Epoch(1), &token()).unwrap(),
        CaptureTier::UnattributedWrites
    );
    sh(&f, "printf y > f0");
    assert_eq!(t.end_capture(&token()).unwrap().receipts, []);
    t.restore().unwrap();
    assert_eq!(f.bytes("f0"), b"y");
}
