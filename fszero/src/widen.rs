//! Modes that keep an ordinary user out of his own directories, and the way around and back.
//!
//! A command may leave a directory that may not be listed, entered or written. What has to be looked at or taken back in
//! it needs the owner's bits; they are added, and the mode that was there is put back afterwards. Root needs none of it.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;
use zero_contracts::read::EntryKind;
use zero_contracts::{Error, WorkspacePath};

use crate::engine::Shared;
use crate::journal::Journal;
use crate::node::Meta;
use crate::seam::Seam;
use crate::tree::{io, os, stat_at};

/// What the owner needs of a directory.
const OWNER: u32 = 0o700;

/// The user that this thread acts as.
fn user() -> Option<u32> {
    std::fs::metadata("/proc/self").ok().map(|meta| meta.uid())
}

/// Directories whose modes were widened: by path, the mode that has to be there again, and the mode that was given.
#[derive(Default)]
pub(crate) struct Widened {
    pub modes: BTreeMap<WorkspacePath, (u32, u32)>,
    seen: std::collections::HashSet<WorkspacePath>,
}

/// A descriptor that a mode can be set through. The root's own is used for itself, because even `.` has to be entered.
fn handle(shared: &Shared, path: &WorkspacePath) -> Result<OwnedFd, Errno> {
    if path.is_root() {
        rustix::io::fcntl_dupfd_cloexec(shared.tree.root(), 0)
    } else {
        shared.tree.handle(path)
    }
}

/// Lets the owner into the root itself, if a transaction that is not over may have closed it: recovery puts back the mode
/// that was there before.
pub(crate) fn let_in(root: &Path, store: &Path, seam: &Seam) -> Result<(), Error> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(at) = rustix::fs::open(root, flags, Mode::empty()) else {
        return Ok(()); // Whoever opens it for good tells why.
    };
    let meta = Meta::new(&rustix::fs::fstat(&at).map_err(|e| os(e, "looking at", &WorkspacePath::root()))?);
    let closed = meta.mode & 0o500 != 0o500 && user().is_some_and(|user| user != 0 && user == meta.uid);
    if !closed {
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(journal) = rustix::fs::open(store.join("journal"), flags, Mode::empty())
        && Journal::new(journal, seam.clone(), true).has_unsettled()?
    {
        let done = seam.chmod(at.as_fd(), meta.mode | OWNER);
        done.map_err(|e| io(&e, "widening the mode of", &WorkspacePath::root()))?;
    }
    Ok(())
}

/// The mode of the root.
pub(crate) fn root_mode(shared: &Shared) -> Result<u32, Error> {
    let stat = rustix::fs::fstat(shared.tree.root()).map_err(|e| os(e, "looking at", &WorkspacePath::root()))?;
    Ok(Meta::new(&stat).mode)
}

/// Sets a mode, durably if that is asked for.
pub(crate) fn set(shared: &Shared, path: &WorkspacePath, mode: u32) -> Result<(), Error> {
    let at = match handle(shared, path) {
        Ok(at) => at,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(e) => return Err(os(e, "opening", path)),
    };
    let meta = Meta::new(&rustix::fs::fstat(&at).map_err(|e| os(e, "looking at", path))?);
    if meta.mode != mode && meta.kind == EntryKind::Directory {
        let done = shared.seam.chmod(at.as_fd(), mode);
        done.map_err(|e| io(&e, "setting the mode of", path))?;
        shared.flush_mode(path)?;
    }
    Ok(())
}

impl Widened {
    /// Lets the owner into the directories from the root down to a path, itself included if it is a directory. Whatever
    /// stands in the way otherwise will be met by who goes there.
    pub fn enter(&mut self, shared: &Shared, path: &WorkspacePath) -> Result<(), Error> {
        let Some(user) = user().filter(|&user| user != 0) else {
            return Ok(());
        };
        let mut at = WorkspacePath::root();
        self.one(shared, &at, user)?;
        for name in path.components() {
            at = at.join(name)?;
            self.one(shared, &at, user)?;
        }
        Ok(())
    }

    fn one(&mut self, shared: &Shared, path: &WorkspacePath, user: u32) -> Result<(), Error> {
        if self.seen.contains(path) {
            return Ok(());
        }
        let Ok(at) = handle(shared, path) else { return Ok(()) };
        let meta = Meta::new(&rustix::fs::fstat(&at).map_err(|e| os(e, "looking at", path))?);
        if meta.kind != EntryKind::Directory {
            return Ok(());
        }
        self.seen.insert(path.clone());
        if meta.uid == user && meta.mode & OWNER != OWNER {
            let done = shared.seam.chmod(at.as_fd(), meta.mode | OWNER);
            done.map_err(|e| io(&e, "widening the mode of", path))?;
            self.modes.insert(path.clone(), (meta.mode, meta.mode | OWNER));
        }
        Ok(())
    }

    /// Lets the owner into everything.
    pub fn enter_all(&mut self, shared: &Shared) -> Result<(), Error> {
        let mut todo = vec![WorkspacePath::root()];
        while let Some(path) = todo.pop() {
            self.enter(shared, &path)?;
            let Ok(directory) = shared.tree.directory(&path) else {
                continue;
            };
            for entry in Dir::read_from(&directory).map_err(|e| os(e, "listing", &path))? {
                let entry = entry.map_err(|e| os(e, "listing", &path))?;
                let name = entry.file_name().to_bytes();
                if !matches!(name, b"." | b"..")
                    && let Ok(Some(meta)) = stat_at(directory.as_fd(), name)
                    && meta.kind == EntryKind::Directory
                {
                    todo.push(path.join(name)?);
                }
            }
        }
        Ok(())
    }

    /// Forgets that a path was entered: its mode is somebody else's concern now.
    pub fn forget(&mut self, path: &WorkspacePath) -> Option<(u32, u32)> {
        self.seen.remove(path);
        self.modes.remove(path)
    }

    /// Puts the modes back, deepest first, where nobody set another one meanwhile.
    pub fn put_back(&mut self, shared: &Shared) -> Result<(), Error> {
        self.seen.clear();
        while let Some((path, (was, given))) = self.modes.pop_last() {
            let now = match handle(shared, &path).and_then(|at| rustix::fs::fstat(&at)) {
                Ok(stat) => Meta::new(&stat),
                Err(_) => continue,
            };
            if now.mode == given {
                set(shared, &path, was)?;
            }
        }
        Ok(())
    }
}
