//! Commands one after another in one transaction, with other programs at work between them.

use std::collections::HashSet;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use fszero::seam::{Call, Gate};
use zero_contracts::files::Durability;
use zero_contracts::{CancelToken, Epoch, FileEngine};

use crate::support::*;

fn token() -> CancelToken {
    CancelToken::new()
}

/// Each path is written by the commands and by others at certain times: what others wrote between two commands is theirs,
/// and stays, also where a command changes the same file next.
#[test]
fn what_others_write_between_commands_is_no_command_s() {
    for durability in [Durability::Process, Durability::Power] {
        let f = Fixture::with(tempfile::tempdir().unwrap(), |config| config.durability(durability));
        f.write("mine", "1")
            .write("theirs", "1")
            .write("both", "1")
            .write("gone", "1");
        let mut t = f.begin();
        t.begin_capture(Epoch(1), &token()).unwrap();
        assert_eq!(t.end_capture(&token()).unwrap().receipts, []);
        // The tree is as it was: its manifest is used again.
        t.begin_capture(Epoch(1), &token()).unwrap();
        f.write("mine", "2");
        let captured = t.end_capture(&token()).unwrap();
        assert_eq!(captured.receipts.len(), 1);
        // Others, at once, and without a change of size.
        f.write("theirs", "3").write("both", "3").write("new", "3");
        std::fs::remove_file(f.at("gone")).unwrap();
        t.begin_capture(Epoch(1), &token()).unwrap();
        f.write("both", "4");
        let captured = t.end_capture(&token()).unwrap();
        let paths: Vec<String> = captured
            .receipts
            .iter()
            .map(|receipt| receipt.path.to_string())
            .collect();
        assert_eq!(paths, ["both"]);
        assert_eq!(t.restore().unwrap().conflicts, []);
        let held = |path: &str| f.bytes(path);
        assert_eq!((held("mine"), held("theirs")), (b"1".to_vec(), b"3".to_vec()));
        assert_eq!((held("both"), held("new")), (b"3".to_vec(), b"3".to_vec()));
        assert!(!f.at("gone").exists());
    }
}

/// A directory that is visited in several pieces is compared as a whole.
#[test]
fn a_directory_of_any_size_is_told_entry_by_entry() {
    for files in [255_usize, 256, 257, 600] {
        let f = Fixture::new();
        for n in 0..files {
            f.write(&format!("many/{n:04}"), n.to_string());
        }
        let old = f.image();
        let mut t = f.begin();
        t.begin_capture(Epoch(1), &token()).unwrap();
        for n in (0..files).step_by(7) {
            f.write(&format!("many/{n:04}"), "changed");
        }
        f.write("many/new", "1");
        let captured = t.end_capture(&token()).unwrap();
        assert_eq!(captured.receipts.len(), files.div_ceil(7) + 1, "{files}");
        assert_eq!(t.restore().unwrap().conflicts, []);
        assert_eq!(f.image(), old, "{files}");
        let seen = f.engine.live().list(&path("many")).unwrap();
        assert_eq!(seen.len(), files);
    }
}

/// Notes the inodes that were flushed.
#[derive(Default)]
struct Flushed(Mutex<HashSet<u64>>);

impl Gate for Flushed {
    fn before(&self, call: &Call<'_>) -> std::io::Result<()> {
        let note = |fd: BorrowedFd<'_>| {
            let meta = std::fs::metadata(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap();
            self.0.lock().unwrap().insert(meta.ino());
        };
        match call {
            Call::Sync { file } => note(*file),
            Call::SyncDirectory { dir } => note(*dir),
            _ => {}
        }
        Ok(())
    }
}

/// What lies below a directory, itself included, and was not flushed.
fn unflushed(at: &Path, flushed: &HashSet<u64>) -> Vec<std::path::PathBuf> {
    let meta = std::fs::symlink_metadata(at).unwrap();
    let mut found = Vec::new();
    if !flushed.contains(&meta.ino()) {
        found.push(at.to_owned());
    }
    if meta.is_dir() {
        for entry in std::fs::read_dir(at).unwrap() {
            found.extend(unflushed(&entry.unwrap().path(), flushed));
        }
    }
    found
}

/// The manifest and every preimage, also where the tree is still what an earlier capture of the transaction recorded and
/// nothing is written anew.
#[test]
fn what_a_command_is_told_by_is_durable_before_each_begins() {
    let gate = Arc::new(Flushed::default());
    let f = Fixture::with(tempfile::tempdir().unwrap(), |config| {
        config.durability(Durability::Power).gate(gate.clone())
    });
    f.write("a", "1").write("d/b", "2").write("large", [7; 100_000]);
    let mut t = f.begin();
    let objects = f.dir.path().join("store/objects");
    for change in [None, None, Some("2"), None, Some("3")] {
        if let Some(text) = change {
            f.write("a", text);
        }
        t.begin_capture(Epoch(1), &token()).unwrap();
        assert_eq!(
            unflushed(&objects, &gate.0.lock().unwrap()),
            Vec::<std::path::PathBuf>::new()
        );
        assert_eq!(t.end_capture(&token()).unwrap().receipts, []);
    }
}
