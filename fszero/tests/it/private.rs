//! The capture tier `private` without a mount: what a command would leave in the upper layer is put there by hand.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use zero_contracts::files::{CommandView, RecoveredOutcome};
use zero_contracts::{CancelToken, Epoch, ErrorKind, FileEngine, Transaction};

use crate::support::{Fixture, fresh, path, seal, stage};

/// The attribute of a program that may do what its user may not.
const CAPABILITY: &str = "security.capability";

fn token() -> CancelToken {
    CancelToken::new()
}

/// Leaves a whiteout; false where the file system or the user cannot make one.
fn whiteout(at: &Path) -> bool {
    let made = Command::new("mknod")
        .arg(at)
        .args(["c", "0", "0"])
        .stderr(std::process::Stdio::null())
        .status();
    made.is_ok_and(|status| status.success())
}

fn opaque(at: &Path) -> bool {
    let directory = std::fs::File::open(at).unwrap();
    rustix::fs::fsetxattr(&directory, "user.overlay.opaque", b"y", rustix::fs::XattrFlags::empty()).is_ok()
}

/// A fixture with an open view, or a printed reason why there is none.
fn opened(files: &[(&str, &str)]) -> Option<(Fixture, Box<dyn Transaction>, CommandView)> {
    let f = Fixture::new();
    for (path, content) in files {
        f.write(path, content);
    }
    let probe = f.dir.path().join("probe");
    std::fs::create_dir(&probe).unwrap();
    if !opaque(&probe) || !whiteout(&probe.join("w")) {
        eprintln!("SKIPPED: no attributes or whiteouts on this file system for this user");
        return None;
    }
    let mut t = f.begin();
    let view = t.open_view(&token()).unwrap();
    Some((f, t, view))
}

#[test]
fn staged_effects_are_laid_and_what_is_left_becomes_effects() {
    let files = [
        ("a", "a"),
        ("gone", "g"),
        ("d/x", "x"),
        ("d/y", "y"),
        ("r/old", "o"),
        (".gitignore", "/out\n/cache\n*.log\n"),
        ("cache/c", "c"),
        ("kept.log", "1"),
    ];
    let Some((f, mut t, view)) = opened(&files) else { return };
    assert_eq!(view.through, [path("cache")]);
    t.end_capture(&token()).unwrap();
    stage(&mut *t, r#"[{"path": "a", "find": "a", "replacement": "A"}, {"move": ["d", "e"]}, {"path": "gone", "remove": true, "expect": "any"}]"#).unwrap();
    let before = f.image();
    let view = t.open_view(&token()).unwrap();
    let up = |path: &str| view.upper.join(path);
    assert_eq!(std::fs::read_to_string(up("a")).unwrap(), "A");
    assert_eq!(std::fs::read_to_string(up("e/x")).unwrap(), "x");
    for gone in ["gone", "d"] {
        assert!(
            std::fs::symlink_metadata(up(gone))
                .unwrap()
                .file_type()
                .is_char_device(),
            "{gone}"
        );
    }
    // As the kernel leaves them: a changed file, one that goes from a moved directory, a replaced directory, a removed
    // one, a link, a mode, and what rules exclude.
    std::fs::write(up("a"), "A more").unwrap();
    std::fs::remove_file(up("e/y")).unwrap();
    std::fs::create_dir(up("r")).unwrap();
    assert!(opaque(&up("r")));
    std::fs::write(up("r/new"), "n").unwrap();
    std::os::unix::fs::symlink("a", up("l")).unwrap();
    std::fs::set_permissions(up("a"), std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::create_dir(up("out")).unwrap();
    assert!(opaque(&up("out")));
    std::fs::write(up("out/o"), "o").unwrap();
    assert!(whiteout(&up("kept.log")));
    let captured = t.end_capture(&token()).unwrap();
    assert_eq!(captured.ignored_paths, 2);
    assert_eq!(f.image(), before, "nothing of it is in the live tree");
    let seen = t.view();
    assert_eq!(&*seen.read(&path("out/o"), &token()).unwrap().bytes, b"o");
    assert!(seen.entry(&path("kept.log")).unwrap().is_none() && seen.entry(&path("e/y")).unwrap().is_none());
    // A second view starts from there.
    let view = t.open_view(&token()).unwrap();
    std::fs::remove_file(view.upper.join("l")).unwrap();
    t.end_capture(&token()).unwrap();
    t.commit(Epoch(1), seal(), &token()).unwrap();
    assert_eq!(
        (f.bytes("a"), f.bytes("e/x"), f.bytes("r/new"), f.bytes("out/o")),
        (b"A more".to_vec(), b"x".to_vec(), b"n".to_vec(), b"o".to_vec())
    );
    for absent in ["gone", "d", "e/y", "r/old", "l", "kept.log"] {
        assert!(std::fs::symlink_metadata(f.at(absent)).is_err(), "{absent}");
    }
    assert_eq!(
        std::fs::metadata(f.at("a")).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // The overlay's own attributes stay behind.
    let mut list = [0_u8; 256];
    let out = std::fs::File::open(f.at("out")).unwrap();
    let length = rustix::fs::flistxattr(&out, &mut list[..]).unwrap();
    assert!(!String::from_utf8_lossy(&list[..length]).contains("overlay"));
    assert_eq!(
        std::fs::read_dir(f.dir.path().join("store/private")).unwrap().count(),
        0
    );
}

/// Whatever state a command leaves a file in, the commit publishes the bytes and the mode that were collected, whether the
/// file of the layer can be moved into place or has to be copied.
#[test]
fn files_of_the_layer_are_moved_or_copied_alike() {
    let names = [
        "plain",
        "early",
        "late",
        "linked",
        "attributed",
        "capable",
        "closed",
        "large",
        "moved",
        "edited",
    ];
    let files: Vec<(&str, &str)> = names.iter().map(|name| (*name, "old\n")).collect();
    let Some((f, mut t, view)) = opened(&files) else { return };
    let up = |name: &str| view.upper.join(name);
    let large = "large ".repeat(200_000);
    for name in names.iter().chain(&["created"]) {
        let text = if *name == "large" { &large } else { "new\n" };
        std::fs::write(up(name), text).unwrap();
    }
    std::fs::hard_link(up("linked"), view.work.join("second name")).unwrap();
    let attributed = std::fs::File::open(up("attributed")).unwrap();
    for attribute in ["user.theirs", "user.overlay.origin"] {
        rustix::fs::fsetxattr(&attributed, attribute, b"1", rustix::fs::XattrFlags::empty()).unwrap();
    }
    // As root it may be given, in the form that the kernel checks.
    let right = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0_u8];
    for name in ["capable", "capable too"] {
        std::fs::write(up(name), "new\n").unwrap();
        let capable = std::fs::File::open(up(name)).unwrap();
        if rustix::fs::fsetxattr(&capable, CAPABILITY, &right, rustix::fs::XattrFlags::empty()).is_err() {
            eprintln!("SKIPPED in part: this user cannot give a program rights");
        }
    }
    std::fs::set_permissions(up("closed"), std::fs::Permissions::from_mode(0o200)).unwrap();
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
    std::fs::File::open(up("early"))
        .unwrap()
        .set_modified(hour_ago)
        .unwrap();
    let inode = |path: std::path::PathBuf| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap());
    let made = inode(up("plain"));
    t.end_capture(&token()).unwrap();
    stage(
        &mut *t,
        r#"[{"move": ["moved", "elsewhere"]}, {"path": "edited", "find": "new", "replacement": "newer"}]"#,
    )
    .unwrap();
    // Nobody can do this; if somebody does, it is not published.
    std::fs::write(up("late"), "not\n").unwrap();
    t.commit(Epoch(1), seal(), &token()).unwrap();
    assert_eq!(
        std::fs::metadata(f.at("closed")).unwrap().permissions().mode() & 0o777,
        0o200
    );
    f.chmod("closed", 0o600);
    for name in [
        "plain",
        "early",
        "late",
        "linked",
        "attributed",
        "capable",
        "capable too",
        "closed",
        "elsewhere",
        "created",
    ] {
        assert_eq!(f.bytes(name), b"new\n", "{name}");
    }
    assert_eq!(
        (f.bytes("edited"), f.bytes("large")),
        (b"newer\n".to_vec(), large.into_bytes())
    );
    assert_eq!(inode(f.at("plain")), made, "it was moved");
    assert_eq!(std::fs::metadata(f.at("early")).unwrap().modified().unwrap(), hour_ago);
    let mut list = [0_u8; 256];
    let attributed = std::fs::File::open(f.at("attributed")).unwrap();
    let length = rustix::fs::flistxattr(&attributed, &mut list[..]).unwrap();
    assert!(!String::from_utf8_lossy(&list[..length]).contains("overlay"));
    for name in ["capable", "capable too"] {
        let got = rustix::fs::getxattr(f.at(name), CAPABILITY, &mut list[..]);
        assert_eq!(got, Err(rustix::io::Errno::NODATA), "{name}");
    }
}

#[test]
fn what_somebody_else_changed_too_is_a_conflict() {
    for command in [
        |upper: &Path| std::fs::write(upper.join("a"), "mine").unwrap(),
        |upper: &Path| assert!(whiteout(&upper.join("a"))),
    ] {
        let Some((f, mut t, view)) = opened(&[("a", "1"), ("b", "1")]) else {
            return;
        };
        command(&view.upper);
        f.write("a", "theirs").write("b", "theirs");
        t.end_capture(&token()).unwrap();
        let failure = t.commit(Epoch(1), seal(), &token()).unwrap_err();
        assert_eq!(
            (failure.error.kind, failure.error.path.as_deref()),
            (ErrorKind::Conflict, Some("a"))
        );
        let theirs = failure.restoration.conflicts[0].theirs.unwrap();
        assert_eq!(f.engine.objects().get(&theirs.digest).unwrap(), b"theirs");
        assert_eq!((f.bytes("a"), f.bytes("b")), (b"theirs".to_vec(), b"theirs".to_vec()));
    }
}

/// Times of modification are for anybody to set: one that is yet to come is no sign that somebody changed the file meanwhile,
/// and one long past none that nobody did.
#[test]
fn a_set_time_of_modification_neither_makes_a_conflict_nor_hides_one() {
    let set = |at: &Path, hours: i64| {
        let by = std::time::Duration::from_secs(3_600 * hours.unsigned_abs());
        let now = std::time::SystemTime::now();
        let time = if hours < 0 { now - by } else { now + by };
        std::fs::File::open(at).unwrap().set_modified(time).unwrap();
    };
    for hours in [-1_000_000, -1, 1, 1_000_000] {
        for meddled in [false, true] {
            let files = [("changed", "1"), ("removed", "1"), ("d/inside", "1")];
            let Some((f, mut t, _)) = opened(&files) else { return };
            t.end_capture(&token()).unwrap();
            t.restore().unwrap();
            for name in ["changed", "removed", "d/inside", "d"] {
                set(&f.at(name), hours);
            }
            // What a command leaves with such a time comes into the live tree with it.
            let mut t = f.begin();
            let view = t.open_view(&token()).unwrap();
            std::fs::write(view.upper.join("made"), "by a command").unwrap();
            set(&view.upper.join("made"), hours);
            t.end_capture(&token()).unwrap();
            t.commit(Epoch(1), seal(), &token()).unwrap();
            let mut t = f.begin();
            let view = t.open_view(&token()).unwrap();
            for name in ["changed", "made"] {
                std::fs::write(view.upper.join(name), "2").unwrap();
            }
            for name in ["removed", "d"] {
                assert!(whiteout(&view.upper.join(name)));
            }
            if meddled {
                f.write("changed", "theirs");
                set(&f.at("changed"), hours);
            }
            t.end_capture(&token()).unwrap();
            match t.commit(Epoch(2), seal(), &token()) {
                Err(failure) => assert!(
                    meddled && failure.error.path.as_deref() == Some("changed"),
                    "{failure:?}"
                ),
                Ok(_) => {
                    assert!(!meddled, "{hours}");
                    assert_eq!((f.bytes("changed"), f.bytes("made")), (b"2".to_vec(), b"2".to_vec()));
                    assert!(!f.at("removed").exists() && !f.at("d").exists());
                }
            }
        }
    }
}

#[test]
fn a_savepoint_a_failure_and_a_death_drop_the_layers() {
    let Some((f, mut t, view)) = opened(&[("a", "1")]) else {
        return;
    };
    let before = f.image();
    let layers = || std::fs::read_dir(f.dir.path().join("store/private")).unwrap().count();
    std::fs::write(view.upper.join("a"), "2").unwrap();
    t.end_capture(&token()).unwrap();
    let mark = t.savepoint();
    let view = t.open_view(&token()).unwrap();
    std::fs::write(view.upper.join("a"), "3").unwrap();
    t.roll_back_to(mark, &token()).unwrap();
    assert_eq!(
        (&*t.view().read(&path("a"), &token()).unwrap().bytes, layers()),
        (&b"2"[..], 0)
    );
    // Laid anew from what is staged.
    let view = t.open_view(&token()).unwrap();
    assert_eq!(std::fs::read_to_string(view.upper.join("a")).unwrap(), "2");
    assert_eq!(t.restore().unwrap().conflicts, []);
    assert_eq!((f.image(), layers()), (before.clone(), 0));

    let mut t = f.begin();
    let view = t.open_view(&token()).unwrap();
    std::fs::write(view.upper.join("a"), "4").unwrap();
    std::mem::forget(t); // the process died
    assert_eq!(layers(), 1);
    let recovered = f.reopen().recover(Epoch(2), &token()).unwrap();
    assert!(
        !recovered
            .iter()
            .any(|dead| matches!(dead.outcome, RecoveredOutcome::Committed(_)))
    );
    assert_eq!((f.image(), layers()), (before, 0));
    let mut again = f.engine.begin(fresh()).unwrap();
    again.open_view(&token()).unwrap();
}

/// What ignore rules exclude comes along whatever modes a command gave it: an ordinary user has to be let in for that.
#[test]
fn ignored_directories_that_are_not_to_be_written_are_carried_over() {
    let Some((f, mut t, view)) = opened(&[(".gitignore", "/cache\n")]) else {
        return;
    };
    let cache = view.upper.join("cache");
    let mode = |at: &Path, mode: u32| std::fs::set_permissions(at, std::fs::Permissions::from_mode(mode)).unwrap();
    std::fs::create_dir_all(cache.join("m/x")).unwrap();
    assert!(opaque(&cache.join("m")) && opaque(&cache));
    std::fs::write(cache.join("m/x/a"), "a").unwrap();
    let attributed = std::fs::File::open(cache.join("m/x/a")).unwrap();
    rustix::fs::fsetxattr(
        &attributed,
        "user.overlay.origin",
        b"1",
        rustix::fs::XattrFlags::empty(),
    )
    .unwrap();
    for (name, bits) in [("m/x/a", 0o444), ("m/x", 0o555), ("m", 0o500), ("", 0o555)] {
        mode(&cache.join(name), bits);
    }
    t.end_capture(&token()).unwrap();
    t.commit(Epoch(1), seal(), &token()).unwrap();
    for (name, bits) in [
        ("cache/m/x/a", 0o444),
        ("cache/m/x", 0o555),
        ("cache/m", 0o500),
        ("cache", 0o555),
    ] {
        let there = std::fs::metadata(f.at(name)).unwrap();
        assert_eq!(there.permissions().mode() & 0o7777, bits, "{name}");
        let mut list = [0_u8; 256];
        assert_eq!(rustix::fs::listxattr(f.at(name), &mut list[..]), Ok(0), "{name}");
    }
    assert_eq!(f.bytes("cache/m/x/a"), b"a");
    // So that it can be removed.
    for name in ["cache", "cache/m", "cache/m/x"] {
        mode(&f.at(name), 0o700);
    }
}
