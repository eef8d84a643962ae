//! Snapshots, collection, damage: what the store keeps.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use zero_contracts::files::ReadLog;
use zero_contracts::source::WalkScope;
use zero_contracts::{ByteRange, CancelToken, Digest, Epoch, ErrorKind, FileEngine, Handle, SourceView};

use crate::support::*;

fn token() -> CancelToken {
    CancelToken::new()
}

fn names(view: &dyn SourceView, scope: &WalkScope) -> Vec<String> {
    let found = std::sync::Mutex::new(Vec::new());
    view.walk(scope, &token(), &|entry| {
        found.lock().unwrap().push(entry.path.to_string());
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    let mut found = found.into_inner().unwrap();
    found.sort();
    found
}

/// Files that claim more than every memory holds, and rules that would take longer to compile than a cell may.
#[test]
fn files_larger_than_memory_are_refused_and_hold_no_rules() {
    let f = Fixture::new();
    f.write("a.log", "").write("d/b", "");
    let live = f.engine.live();
    for name in ["huge", ".gitignore", "d/.ignore", ".git/info/exclude"] {
        f.write(name, "");
        let file = std::fs::File::options().write(true).open(f.root().join(name)).unwrap();
        file.set_len(1 << 40).unwrap();
        let error = live.read(&path(name), &token()).unwrap_err();
        assert_eq!((error.kind, error.path.as_deref()), (ErrorKind::Budget, Some(name)));
    }
    let everything = [".gitignore", "a.log", "d/.ignore", "d/b", "huge"];
    assert_eq!(names(&*live, &WalkScope::default()), everything);
    for name in ["huge", ".gitignore", "d/.ignore", ".git/info/exclude"] {
        std::fs::remove_file(f.root().join(name)).unwrap();
    }
    // Rules too many, and a rule too long among others.
    let many = "*.log\n".repeat((1 << 20) / 6 + 1);
    let long = format!("{}\nb\n", "*a".repeat(1 << 18));
    f.write(".gitignore", &many).write("d/.ignore", &long);
    assert_eq!(
        names(&*live, &WalkScope::default()),
        [".gitignore", "a.log", "d/.ignore"]
    );
    f.write(".gitignore", "*.log\n");
    assert_eq!(names(&*live, &WalkScope::default()), [".gitignore", "d/.ignore"]);
}

#[test]
fn ignore_rules_of_every_kind_are_followed() {
    let f = Fixture::new();
    f.write(".gitignore", "*.log\n/target\n!keep.log\n")
        .write("a.log", "")
        .write("keep.log", "")
        .write("target/x", "");
    f.write("d/.ignore", "!a.log\nsecret\n")
        .write("d/a.log", "")
        .write("d/secret", "")
        .write("d/target/y", "")
        .write("d/z", "");
    f.write(".git/info/exclude", "excluded\n")
        .write("excluded", "")
        .write(".git/config", "");
    let live = f.engine.live();
    let expected = [".gitignore", "d/.ignore", "d/a.log", "d/target/y", "d/z", "keep.log"];
    assert_eq!(names(&*live, &WalkScope::default()), expected);
    let all = WalkScope {
        ignored: true,
        ..WalkScope::default()
    };
    assert_eq!(names(&*live, &all).len(), 10);
    let within = WalkScope {
        start: path("d"),
        ..WalkScope::default()
    };
    assert_eq!(names(&*live, &within), &expected[1..5]);
    // A snapshot of everything follows the same rules; a staged rule file counts in the staged view.
    let snapshot = f.engine.snapshot(&token()).unwrap();
    assert_eq!(
        names(&*f.engine.snapshot_view(&snapshot).unwrap(), &WalkScope::default()),
        expected
    );
    let mut t = f.begin();
    stage(&mut *t, r#"[{"path": "d/.ignore", "content": "z\n", "expect": "any"}]"#).unwrap();
    assert_eq!(names(&*t.view(), &within), ["d/.ignore", "d/secret", "d/target/y"]);
    let shallow = WalkScope {
        depth: Some(1),
        directories: true,
        ..WalkScope::default()
    };
    assert_eq!(names(&*live, &shallow), [".gitignore", "d", "keep.log"]);
}

#[test]
fn snapshots_tell_differences_and_are_restored() {
    let f = Fixture::new();
    f.write("a", "1").write("d/b", "2").chmod("d/b", 0o755).link("a", "l");
    std::fs::create_dir(f.at("empty")).unwrap();
    let before = f.image();
    let first = f.engine.snapshot(&token()).unwrap();
    assert_eq!(f.engine.snapshot(&token()).unwrap(), first);
    f.write("a", "changed").write("new/x", "n");
    std::fs::remove_file(f.at("d/b")).unwrap();
    std::fs::remove_dir(f.at("empty")).unwrap();
    let second = f.engine.snapshot(&token()).unwrap();
    let changed: Vec<String> = f
        .engine
        .diff(&first, &second, &token())
        .unwrap()
        .iter()
        .map(|c| c.path.to_string())
        .collect();
    assert_eq!(changed, ["a", "d/b", "empty", "new", "new/x"]);
    let mut t = f.engine.restore_snapshot(&first, fresh(), &token()).unwrap();
    finish(&mut *t).unwrap();
    assert_eq!(f.image(), before);
    let view = f.engine.snapshot_view(&second).unwrap();
    assert_eq!(&*view.read(&path("l"), &token()).unwrap().bytes, b"changed");
    assert_eq!(view.resolve(&path("l")).unwrap().unwrap().path, path("a"));
    assert_eq!(view.list(&path("new")).unwrap().len(), 1);
    assert_eq!(f.engine.manifest(&first).unwrap().len(), 5);
}

#[test]
fn a_snapshot_guards_an_edit() {
    let f = Fixture::new();
    f.write("a", "1");
    let content = f.engine.live().read(&path("a"), &token()).unwrap();
    let handle = f
        .engine
        .snapshot_file(&path("a"), content.entry.mode, content.digest, 1)
        .unwrap();
    let edit = format!(r#"[{{"path": "a", "content": "2", "expect": "{handle}"}}]"#);
    f.write("a", "x");
    assert_eq!(f.refuse(&edit).kind, ErrorKind::Conflict);
    f.write("a", "1");
    f.commit(&edit).unwrap();
    assert_eq!(f.bytes("a"), b"2");
}

#[test]
fn objects_are_deduplicated_verified_streamed_and_bounded() {
    let f = Fixture::with(scratch(), |mut config| {
        config.quota = 5 << 20;
        config
    });
    let objects = f.engine.objects();
    let small = objects.put(b"small").unwrap();
    assert_eq!(objects.put(b"small").unwrap(), small);
    let mut writer = objects.writer().unwrap();
    for _ in 0..200 {
        writer.write_all(&[7; 10_000]).unwrap();
    }
    let (large, size) = writer.finish().unwrap();
    assert_eq!((size, objects.size(&large).unwrap()), (2_000_000, Some(2_000_000)));
    assert_eq!(
        objects
            .get_range(&large, ByteRange::new(1_999_998, 3_000_000).unwrap())
            .unwrap(),
        [7, 7]
    );
    assert_eq!(objects.put(&vec![1; 4 << 20]).unwrap_err().kind, ErrorKind::Budget);
    let hex = large.to_hex();
    let file = f.dir.path().join("store/objects").join(&hex[..2]).join(&hex[2..]);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[1000] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let error = objects.get(&large).unwrap_err();
    assert_eq!(
        (error.kind, error.path),
        (ErrorKind::Corrupt, Some(Handle::blob(large).to_string()))
    );
    let mut sink = Vec::new();
    assert_eq!(
        std::io::copy(&mut objects.open(&large).unwrap(), &mut sink)
            .unwrap_err()
            .kind(),
        std::io::ErrorKind::InvalidData
    );
    assert_eq!(f.engine.verify(&token()).unwrap().len(), 1);
    assert_eq!(objects.get(&small).unwrap(), b"small");
    assert_eq!(objects.get(&Digest::of(b"none")).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn collection_keeps_what_is_reached_and_spares_the_young() {
    let dir = scratch();
    let f = Fixture::with(dir, |mut config| {
        config.young = Duration::ZERO;
        config
    });
    f.write("tracked", "in a snapshot");
    let objects = f.engine.objects();
    let garbage = objects.put(b"garbage").unwrap();
    let named = objects.put(b"named by the event").unwrap();
    let event = objects
        .put(format!(r#"{{"value": "z://blob/{named}"}}"#).as_bytes())
        .unwrap();
    let snapshot = f.engine.snapshot(&token()).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    let alive = f.begin();
    assert_eq!(f.engine.collect(&[event], &token()).unwrap_err().kind, ErrorKind::Busy);
    drop(alive);
    let collected = f.engine.collect(&[event, snapshot.digest], &token()).unwrap();
    assert_eq!(collected.removed, 1);
    assert_eq!(objects.get(&garbage).unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(objects.get(&named).unwrap(), b"named by the event");
    assert_eq!(
        &*f.engine
            .snapshot_view(&snapshot)
            .unwrap()
            .read(&path("tracked"), &token())
            .unwrap()
            .bytes,
        b"in a snapshot"
    );
    // Without its root the snapshot goes, and taking it again stores it again.
    f.engine.collect(&[], &token()).unwrap();
    assert_eq!(f.engine.snapshot(&token()).unwrap(), snapshot);
    assert_eq!(objects.get(&Digest::of(b"in a snapshot")).unwrap(), b"in a snapshot");
}

#[test]
fn collection_against_a_thousand_cells_loses_nothing() {
    let f = Fixture::with(scratch(), |mut config| {
        config.young = Duration::ZERO;
        config
    });
    f.write("f", "start");
    let engine = f.engine.clone();
    let running = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let collector = {
        let (engine, running) = (engine.clone(), running.clone());
        std::thread::spawn(move || {
            let mut done = (0, 0);
            while running.load(std::sync::atomic::Ordering::Relaxed) {
                match engine.collect(&[], &CancelToken::new()) {
                    Ok(collected) => {
                        done = (done.0 + 1, done.1 + collected.removed);
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    Err(e) => {
                        assert_eq!(e.kind, ErrorKind::Busy, "{e}");
                        std::thread::sleep(Duration::from_micros(200));
                    }
                }
            }
            done
        })
    };
    let mut handles = Vec::new();
    for n in 0..1000_u32 {
        let mut t = engine.begin(fresh()).unwrap();
        // Large enough to be an object, and republished now and then.
        let text = format!("{}\n", n % 40).repeat(8000);
        stage(
            &mut *t,
            &serde_json::json!([{"path": "f", "content": text, "expect": "any"}]).to_string(),
        )
        .unwrap();
        let event = engine
            .objects()
            .put(
                format!(
                    r#"{{"cell": {n}, "value": "z://blob/{}"}}"#,
                    Digest::of(text.as_bytes())
                )
                .as_bytes(),
            )
            .unwrap();
        let blob = engine.objects().put(text.as_bytes()).unwrap();
        t.commit(
            Epoch(1),
            zero_contracts::files::CommitSeal { event, ..seal() },
            &token(),
        )
        .unwrap();
        handles.extend([event, blob]);
        // A collection waits for a moment without a transaction: there are such moments between cells.
        if n % 50 == 49 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    running.store(false, std::sync::atomic::Ordering::Relaxed);
    let (rounds, removed) = collector.join().unwrap();
    println!("collection beside 1,000 cells: {rounds} rounds, {removed} objects removed");
    assert!(rounds > 0);
    for handle in handles {
        engine.objects().get(&handle).unwrap();
    }
    assert_eq!(engine.verify(&token()).unwrap(), []);
}

#[test]
fn old_segments_are_pruned_and_their_objects_stay() {
    let f = Fixture::new();
    f.write("f", "0");
    let mut last = 0;
    let mut events = Vec::new();
    // Preimages travel in the journal until it is pruned.
    for n in 0..900 {
        let text = format!("{n:05}\n").repeat(2000);
        let mut t = f.begin();
        stage(
            &mut *t,
            &serde_json::json!([{"path": "f", "content": text, "expect": "any"}]).to_string(),
        )
        .unwrap();
        last = finish(&mut *t).unwrap().sequence;
        events.push(Digest::of(text.as_bytes()));
    }
    let segments = || std::fs::read_dir(f.dir.path().join("store/journal")).unwrap().count();
    assert!(segments() > 1, "the journal has one segment");
    assert_eq!(f.engine.commits_after(0).unwrap().len(), 900);
    assert_eq!(f.engine.verify(&token()).unwrap(), []);
    // A segment that vanishes otherwise is missed, whichever it is.
    let journal = f.dir.path().join("store/journal");
    let mut names: Vec<_> = std::fs::read_dir(&journal)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    names.sort();
    for lost in &names[..names.len() - 1] {
        let aside = f.dir.path().join("aside");
        std::fs::rename(lost, &aside).unwrap();
        let damage = f.reopen().verify(&token()).unwrap();
        assert!(
            damage
                .iter()
                .any(|d| d.what.contains("journal") && d.detail.contains("missing")),
            "{damage:?}"
        );
        std::fs::rename(&aside, lost).unwrap();
    }
    f.engine.prune(last).unwrap();
    assert_eq!(segments(), 1);
    let left = f.reopen();
    assert_eq!(left.verify(&token()).unwrap(), [], "what was pruned is not missing");
    assert!(left.commits_after(0).unwrap().len() < 900);
    assert_eq!(left.commits_after(last).unwrap(), []);
    for digest in &events[..899] {
        left.objects().get(digest).unwrap();
    }
    assert_eq!(left.last_epoch().unwrap(), Epoch(1));
}

#[test]
fn an_emptied_journal_is_damage() {
    for empty in [
        |at: &std::path::Path| std::fs::write(at, "").unwrap(),
        |at: &std::path::Path| std::fs::remove_file(at).unwrap(),
    ] {
        let f = Fixture::new();
        assert_eq!(f.engine.verify(&token()).unwrap(), [], "a new store is whole");
        f.commit(r#"[{"path": "a", "create": "a"}]"#).unwrap();
        assert_eq!(f.engine.verify(&token()).unwrap(), []);
        let segments = std::fs::read_dir(f.dir.path().join("store/journal")).unwrap();
        segments.for_each(|entry| empty(&entry.unwrap().path()));
        let damage = f.reopen().verify(&token()).unwrap();
        assert_eq!(damage.len(), 1, "{damage:?}");
        assert!(damage[0].detail.contains("emptied"), "{damage:?}");
    }
}

/// However much of its end a journal loses: what somebody has seen of it is missed, and nothing else is.
#[test]
fn a_journal_that_lost_its_end_is_damage_to_whoever_saw_it() {
    let f = Fixture::new();
    let mut last = 0;
    for n in 0..4 {
        last = f
            .commit(&format!(r#"[{{"path": "f{n}", "create": "{n}"}}]"#))
            .unwrap()
            .1
            .sequence;
    }
    let mut segments = std::fs::read_dir(f.dir.path().join("store/journal")).unwrap();
    let segment = segments.next().unwrap().unwrap().path();
    let whole = std::fs::read(&segment).unwrap();
    let mut told = [0, 0];
    for left in (0..=whole.len()).rev().step_by(7) {
        std::fs::write(&segment, &whole[..left]).unwrap();
        let engine = f.reopen();
        let is_there = engine.commits_after(0).unwrap().last().map(|commit| commit.sequence) == Some(last);
        assert_eq!(engine.commits_after(last).unwrap(), []);
        let damage = engine.verify(&token()).unwrap();
        assert_eq!(damage.is_empty(), is_there, "{left} of {}: {damage:?}", whole.len());
        told[usize::from(is_there)] += 1;
    }
    assert!(told.iter().all(|times| *times > 0), "{told:?}");
}

#[test]
fn an_old_epoch_may_not_publish() {
    let f = Fixture::new();
    let mut t = f.begin();
    stage(&mut *t, r#"[{"path": "a", "create": "a"}]"#).unwrap();
    t.commit(Epoch(7), seal(), &token()).unwrap();
    let mut late = f.begin();
    stage(&mut *late, r#"[{"path": "b", "create": "b"}]"#).unwrap();
    assert_eq!(
        late.commit(Epoch(6), seal(), &token()).unwrap_err().error.kind,
        ErrorKind::Busy
    );
    assert!(!f.at("b").exists());
    assert_eq!(f.engine.recover(Epoch(6), &token()).unwrap_err().kind, ErrorKind::Busy);
    assert_eq!(f.reopen().last_epoch().unwrap(), Epoch(7));
}

#[test]
fn restored_files_have_a_present_time_and_their_own_inode() {
    let f = Fixture::new();
    f.write("a", "a").write("b", "b");
    let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    for name in ["a", "b"] {
        std::fs::File::options()
            .write(true)
            .open(f.at(name))
            .unwrap()
            .set_modified(old)
            .unwrap();
    }
    let inode = std::fs::metadata(f.at("a")).unwrap().ino();
    let mut t = f.begin();
    stage(
        &mut *t,
        r#"[{"path": "a", "find": "a", "replacement": "x"}, {"path": "b", "remove": true, "expect": "any"}]"#,
    )
    .unwrap();
    t.materialize(Epoch(1), &token()).unwrap();
    t.restore().unwrap();
    assert_eq!(std::fs::metadata(f.at("a")).unwrap().ino(), inode);
    for name in ["a", "b"] {
        let age = std::fs::metadata(f.at(name))
            .unwrap()
            .modified()
            .unwrap()
            .elapsed()
            .unwrap();
        assert!(age < Duration::from_secs(60), "{name} is {age:?} old");
    }
}

#[test]
fn staged_bytes_are_bounded_and_cancellation_is_heard() {
    let f = Fixture::new();
    f.write("a", "a");
    let mut t = f
        .engine
        .begin(zero_contracts::files::BeginTransaction {
            staged_bytes: 10,
            ..fresh()
        })
        .unwrap();
    let error = stage(&mut *t, r#"[{"path": "b", "create": "12345678901"}]"#).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Budget);
    assert!(t.is_empty() && t.staged_bytes() == 0);
    let cancelled = token();
    cancelled.cancel();
    let error = t
        .stage(
            &operations(r#"[{"path": "b", "create": "1"}]"#),
            &ReadLog::new(),
            &cancelled,
        )
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled);
    stage(&mut *t, r#"[{"path": "b", "create": "1"}]"#).unwrap();
    assert_eq!(
        t.commit(Epoch(1), seal(), &cancelled).unwrap_err().error.kind,
        ErrorKind::Cancelled
    );
    assert!(!f.at("b").exists());
}
