//! A private directory for temporary files of the commands of one owner, where they may not write to the usual place.
//!
//! It goes with its owner. A host that is killed leaves it behind; whoever makes the next one removes it. That its owner
//! lives shows by a lock on the directory, which the kernel takes off with the process, whatever name spaces hosts that
//! share the place live in.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

use crate::start::fresh_name;

const PREFIX: &str = "zero-run-";

/// The directory, locked while this lives.
#[derive(Debug)]
pub(crate) struct Temporary {
    path: PathBuf,
    _lock: File,
}

impl Temporary {
    /// Makes one in a directory, and removes those there whose owners are gone.
    ///
    /// # Errors
    /// What making, opening or locking it met.
    pub(crate) fn make(place: &Path) -> io::Result<Self> {
        remove_abandoned(place);
        loop {
            let path = place.join(format!("{PREFIX}{}", fresh_name()));
            DirBuilder::new().mode(0o700).create(&path)?;
            let lock = match open_directory(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            // Until it is locked another owner may take it for abandoned.
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() && is_same(&lock, &path) {
                let path = fs::canonicalize(path)?;
                return Ok(Self { path, _lock: lock });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What cannot be removed is a temporary file like others.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?.into())
}

fn is_same(open: &File, path: &Path) -> bool {
    let (Ok(own), Ok(there)) = (open.metadata(), fs::symlink_metadata(path)) else {
        return false;
    };
    (own.dev(), own.ino()) == (there.dev(), there.ino())
}

/// Removes this user's directories that no owner holds. What cannot be looked at or removed is left.
fn remove_abandoned(place: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let Ok(lock) = open_directory(&entry.path()) else {
            continue;
        };
        let own = lock.metadata().is_ok_and(|data| data.uid() == user);
        if own && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() && is_same(&lock, &entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn it_goes_with_its_owner_and_one_whose_owner_died_with_the_next() {
        let place = tempfile::tempdir().unwrap();
        let abandoned = place.path().join("zero-run-1-2-3");
        fs::create_dir_all(abandoned.join("deep")).unwrap();
        fs::write(abandoned.join("deep/file"), "left").unwrap();
        let other = place.path().join("zero-other");
        fs::create_dir(&other).unwrap();
        let first = Temporary::make(place.path()).unwrap();
        let second = Temporary::make(place.path()).unwrap();
        assert!(!abandoned.exists() && other.exists());
        assert!(first.path().is_dir() && second.path().is_dir() && first.path() != second.path());
        fs::write(first.path().join("x"), "x").unwrap();
        let gone = first.path().to_owned();
        drop(first);
        assert!(!gone.exists() && second.path().is_dir());
    }

    #[test]
    fn many_at_once_take_none_from_one_another() {
        let place = tempfile::tempdir().unwrap();
        let all: Vec<Temporary> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        (0..20)
                            .map(|_| Temporary::make(place.path()).unwrap())
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            makers.into_iter().flat_map(|maker| maker.join().unwrap()).collect()
        });
        assert!(all.iter().all(|one| one.path().is_dir()));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 160);
    }
}
