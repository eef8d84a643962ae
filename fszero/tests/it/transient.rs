//! A store that goes with its engine is never flushed; what a commit does to the workspace is flushed all the same.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fszero::seam::{Call, Gate};
use zero_contracts::files::Durability;

use crate::gates::held;
use crate::support::{Fixture, config};

/// Remembers what was flushed, by path.
#[derive(Default)]
struct Flushes(Mutex<Vec<PathBuf>>);

impl Gate for Flushes {
    fn before(&self, call: &Call<'_>) -> io::Result<()> {
        let path = |file: &BorrowedFd<'_>| std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        match call {
            Call::Sync { file } | Call::SyncDirectory { dir: file } | Call::SyncAll { on: file } => {
                held(&self.0).push(path(file)?);
            }
            _ => {}
        }
        Ok(())
    }
}

/// What opening a new store and some commits flush: below the root, with the number of a staging directory left out, and
/// below the store.
fn flushed(lasting: bool) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let gate = Arc::new(Flushes::default());
    let dir = tempfile::tempdir().unwrap();
    let fixture = Fixture::with(dir, |config| {
        let mut config = config.durability(Durability::Power).gate(gate.clone());
        config.lasting = lasting;
        config
    });
    fixture.write("a", "1\n").write("d/b", "2\n").chmod("d/b", 0o755);
    // Too large to travel inside the journal.
    let large = "x".repeat(100_000);
    for operations in [
        r#"[{"path": "a", "find": "1", "replacement": "2"}, {"path": "new/deep", "create": "3"}]"#,
        r#"[{"move": ["d", "e"]}, {"path": "e/b", "remove": true, "expect": "any"}, {"symlink": ["a", "link"]}]"#,
        &format!(r#"[{{"path": "large", "create": "{large}"}}]"#),
        r#"[{"path": "large", "content": "small", "expect": "any"}]"#,
    ] {
        fixture.commit(operations).unwrap();
    }
    let root = fixture.root().canonicalize().unwrap();
    let all = std::mem::take(&mut *held(&gate.0));
    let (in_root, in_store): (Vec<_>, Vec<_>) = all.into_iter().partition(|path| path.starts_with(&root));
    let without_number = |path: &PathBuf| {
        let inside = path.strip_prefix(&root).unwrap();
        let parts = inside.components().map(|part| {
            let name = part.as_os_str().to_string_lossy();
            match name.starts_with(".fszero-") {
                true => ".fszero".to_owned(),
                false => name.into_owned(),
            }
        });
        parts.collect::<PathBuf>()
    };
    // What is flushed in one round has no order.
    let mut inside: Vec<PathBuf> = in_root.iter().map(without_number).collect();
    inside.sort();
    (inside, in_store)
}

#[test]
fn a_store_that_does_not_last_is_never_flushed_and_the_workspace_is_as_ever() {
    let (lasting_root, lasting_store) = flushed(true);
    let (root, store) = flushed(false);
    assert_eq!(store, Vec::<PathBuf>::new());
    assert!(lasting_store.len() > 8, "{lasting_store:?}");
    assert!(lasting_root.len() > 8, "{lasting_root:?}");
    assert_eq!(root, lasting_root);
}

#[test]
fn it_is_a_whole_store_while_it_is_there() {
    let fixture = Fixture::with(crate::support::scratch(), |config| {
        let mut config = config.durability(Durability::Power);
        config.lasting = false;
        config
    });
    fixture.write("a", "1\n");
    let before = fixture.image();
    fixture
        .commit(r#"[{"path": "a", "find": "1", "replacement": "2"}]"#)
        .unwrap();
    assert_eq!(fixture.bytes("a"), b"2\n");
    let mut dropped = fixture.begin();
    crate::support::stage(&mut *dropped, r#"[{"path": "a", "find": "2", "replacement": "3"}]"#).unwrap();
    drop(dropped);
    assert_eq!(fixture.bytes("a"), b"2\n");
    // A process that finds it, and takes it for one that lasts, can use it.
    let again = fszero::FsZero::open(config(Path::new(fixture.dir.path()))).unwrap();
    let commits = zero_contracts::FileEngine::commits_after(&again, 0).unwrap();
    assert_eq!((commits.len(), before == fixture.image()), (1, false));
}
