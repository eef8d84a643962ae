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

#[test]
fn what_leads_outside_is_refused_for_reading_and_writing() {
    let f = Fixture::new();
    std::fs::create_dir(f.dir.path().join("outside")).unwrap();
    std::fs::write(f.dir.path().join("outside/f"), "secret").unwrap();
    f.write("in", "in").write("d/x", "x");
    let outside = f.dir.path().join("outside");
    f.link(outside.join("f").to_str().unwrap(), "l")
        .link("../outside", "up")
        .link("in", "ok")
        .link("../in", "d/back");
    f.link(f.at("in").to_str().unwrap(), "absolute");
    let live = f.engine.live();
    let token = CancelToken::new();
    for bad in ["l", "up/f"] {
        assert_eq!(
            live.read(&path(bad), &token).unwrap_err().kind,
            ErrorKind::OutsideWorkspace,
            "{bad}"
        );
        for change in [
            r#""content": "x", "expect": "any""#,
            r#""find": "secret", "replacement": "x""#,
            r#""mode": 511"#,
        ] {
            let error = f.refuse(&format!(r#"[{{"path": "{bad}", {change}}}]"#));
            assert_eq!(error.kind, ErrorKind::OutsideWorkspace, "{bad} {change}");
        }
    }
    assert_eq!(
        f.refuse(r#"[{"path": "up/new", "create": "x"}]"#).kind,
        ErrorKind::OutsideWorkspace
    );
    assert_eq!(
        f.refuse(r#"[{"symlink": ["../x", "s"]}]"#).kind,
        ErrorKind::OutsideWorkspace
    );
    assert_eq!(
        f.refuse(r#"[{"symlink": ["/etc/passwd", "s"]}]"#).kind,
        ErrorKind::OutsideWorkspace
    );
    assert_eq!(std::fs::read(outside.join("f")).unwrap(), b"secret");
    // A link inside is followed and edited through, and stays a link.
    for good in ["ok", "d/back", "absolute"] {
        assert_eq!(
            &*live.read(&path(good), &token).unwrap().bytes,
            &*f.bytes("in"),
            "{good}"
        );
        f.commit(&format!(
            r#"[{{"path": "{good}", "insertAfter": 1, "content": "{good}", "expect": "any"}}]"#
        ))
        .unwrap();
        assert!(std::fs::symlink_metadata(f.at(good)).unwrap().is_symlink());
    }
    assert_eq!(f.bytes("in"), b"in\nabsolute\nd/back\nok");
    // A copy of a link is a new link, and must not lead out; where it leads depends on where it is.
    for bad in [r#"["l", "c"]"#, r#"["up", "c"]"#, r#"["d/back", "back"]"#] {
        let error = f.refuse(&format!(r#"[{{"copy": {bad}}}]"#));
        assert_eq!(error.kind, ErrorKind::OutsideWorkspace, "{bad}");
    }
    f.commit(r#"[{"copy": ["d/back", "d/again"]}, {"copy": ["absolute", "d/absolute"]}]"#)
        .unwrap();
    assert_eq!(f.bytes("d/again"), f.bytes("in"));
    assert_eq!(f.bytes("d/absolute"), f.bytes("in"));
    // A link may be removed or moved itself, wherever it leads.
    f.commit(r#"[{"path": "l", "remove": true}, {"move": ["up", "up2"]}]"#)
        .unwrap();
    assert_eq!(std::fs::read(outside.join("f")).unwrap(), b"secret");
}

#[test]
fn devices_are_listed_and_never_opened() {
    let f = Fixture::with(tempfile::tempdir().unwrap(), |config| config);
    let made = std::process::Command::new("mkfifo").arg(f.at("fifo")).status().unwrap();
    assert!(made.success());
    let live = f.engine.live();
    assert_eq!(
        live.list(&path(".")).unwrap()[0].kind,
        zero_contracts::read::EntryKind::Other
    );
    // Opening a FIFO would wait for a writer for ever.
    assert_eq!(
        live.read(&path("fifo"), &CancelToken::new()).unwrap_err().kind,
        ErrorKind::InvalidInput
    );
    assert_eq!(
        f.engine.open_external(&f.at("fifo")).err().unwrap().kind,
        ErrorKind::InvalidInput
    );
    for change in [
        r#""content": "x", "expect": "any""#,
        r#""remove": true"#,
        r#""mode": 511"#,
    ] {
        assert_eq!(
            f.refuse(&format!(r#"[{{"path": "fifo", {change}}}]"#)).kind,
            ErrorKind::InvalidInput
        );
    }
    f.engine.snapshot(&CancelToken::new()).unwrap();
}

#[test]
fn external_reads_stay_out_of_system_directories_and_of_the_store() {
    let f = Fixture::with(tempfile::tempdir().unwrap(), |config| config);
    let outside = f.dir.path().join("plain");
    std::fs::write(&outside, "text").unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut f.engine.open_external(&outside).unwrap(), &mut text).unwrap();
    assert_eq!(text, "text");
    let kind = |path: &std::path::Path| f.engine.open_external(path).err().unwrap().kind;
    assert_eq!(kind("/proc/self/environ".as_ref()), ErrorKind::Denied);
    std::os::unix::fs::symlink("/proc/version", f.dir.path().join("sly")).unwrap();
    assert_eq!(kind(&f.dir.path().join("sly")), ErrorKind::Denied);
    assert_eq!(kind("/dev/null".as_ref()), ErrorKind::Denied);
    assert_eq!(kind(&f.dir.path().join("store/format")), ErrorKind::OutsideWorkspace);
    assert_eq!(kind(&f.dir.path().join("none")), ErrorKind::NotFound);
}

#[test]
fn a_store_inside_the_root_is_refused_and_so_is_a_newer_one() {
    let dir = scratch();
    std::fs::create_dir(dir.path().join("root")).unwrap();
    let open =
        |store: &str| fszero::FsZero::open(fszero::FsConfig::new(dir.path().join("root"), dir.path().join(store)));
    assert_eq!(open("root/.store").err().unwrap().kind, ErrorKind::InvalidInput);
    assert_eq!(open(".").err().unwrap().kind, ErrorKind::InvalidInput);
    open("deep/er/store").unwrap();
    std::fs::write(dir.path().join("deep/er/store/format"), "fszero store 99\n").unwrap();
    assert_eq!(open("deep/er/store").err().unwrap().kind, ErrorKind::Unsupported);
}

#[test]
fn hard_links_modes_owners_and_attributes_are_kept_or_the_edit_is_refused() {
    use std::os::unix::fs::MetadataExt;
    let f = Fixture::new();
    f.write("a", "a").write("x", "x").chmod("x", 0o4750);
    std::fs::hard_link(f.at("a"), f.at("b")).unwrap();
    let error = f.refuse(r#"[{"path": "a", "find": "a", "replacement": "c"}]"#);
    assert_eq!(error.kind, ErrorKind::Unsupported);
    // Said explicitly, the names part.
    f.commit(r#"[{"path": "a", "remove": true, "expect": "any"}, {"path": "a", "create": "c"}]"#)
        .unwrap();
    assert_eq!((f.bytes("a"), f.bytes("b")), (b"c".to_vec(), b"a".to_vec()));
    let attribute = std::process::Command::new("setfattr")
        .args(["-n", "user.note", "-v", "kept"])
        .arg(f.at("x"))
        .status();
    let owned = std::os::unix::fs::chown(f.at("x"), Some(12345), Some(54321)).is_ok();
    let before = std::fs::metadata(f.at("x")).unwrap();
    f.chmod("x", 0o4750);
    f.commit(r#"[{"path": "x", "find": "x", "replacement": "y"}]"#).unwrap();
    let after = std::fs::metadata(f.at("x")).unwrap();
    assert_eq!(
        (after.mode() & 0o7777, after.uid(), after.gid()),
        (0o4750, before.uid(), before.gid())
    );
    assert!(!owned || after.uid() == 12345);
    if attribute.is_ok_and(|s| s.success()) {
        let shown = std::process::Command::new("getfattr")
            .args(["--only-values", "-n", "user.note"])
            .arg(f.at("x"))
            .output()
            .unwrap();
        assert_eq!(shown.stdout, b"kept");
    }
}

#[test]
fn a_large_file_is_edited_near_its_start_and_keeps_length_and_tail() {
    let f = Fixture::new();
    let mut text = b"head\r\nneedle\r\n".to_vec();
    text.resize(20 << 20, b'z');
    f.write("large", &text);
    let (receipts, _) = f.commit(r#"[{"path": "large", "find": "needle", "replacement": "NEEDLE"}, {"path": "large", "insertBefore": 1, "content": "first", "expect": "any"},
        {"path": "large", "lines": [2, 2], "content": "HEAD"}]"#).unwrap();
    assert_eq!(receipts[0].notes["matches"], 1);
    let now = f.bytes("large");
    assert!(now.starts_with(b"first\r\nHEAD\r\nNEEDLE\r\nzzz") && now.len() == text.len() + 7);
    assert!(now[22..].iter().all(|&b| b == b'z'));
}

#[test]
fn nothing_changes_the_tree_but_the_seam() {
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut todo = vec![sources];
    let mut seen = 0;
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path
                .file_name()
                .is_some_and(|name| name != "seam.rs" && name != "tests.rs")
            {
                let found = fszero::seam::mutating_calls_elsewhere(&std::fs::read_to_string(&path).unwrap());
                assert!(found.is_empty(), "{}: {found:?}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 20);
    let seam = include_str!("../../src/seam.rs");
    assert!(
        fszero::seam::mutating_calls_elsewhere(seam).len() > 15,
        "the check sees nothing"
    );
}
