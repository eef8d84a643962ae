//! Carrying over what ignore rules exclude, once the transaction is committed. It is outside what a commit promises: what
//! cannot be carried over is dropped, and nothing of the live tree is lost for it but what a command replaced or removed.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, OFlags, openat};
use zero_contracts::read::EntryKind;
use zero_contracts::{CancelToken, WorkspacePath};

use super::deep::{DEEPEST, check_depth, with_room};
use super::{Layer, OWN_ATTRIBUTES, Private, lay, let_in, look, names, open_at, set_mode};
use crate::engine::Shared;
use crate::seam::Rename;
use crate::tree::stat_at;

impl Private {
    /// Moves everything that waits to its place; returns how many of the topmost paths could be.
    pub fn carry(&self) -> u64 {
        // Without a thread nothing is carried over, which is no more than is promised.
        with_room(|| self.carry_all()).unwrap_or(0)
    }

    fn carry_all(&self) -> u64 {
        let mut done = 0;
        for (path, kind) in &self.carried {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                continue;
            };
            let Ok(live) = self.shared.tree.directory(&parent) else {
                continue;
            };
            let moved = match kind {
                None => self.shared.seam.unlink(live.as_fd(), name),
                Some(_) => match self.upper.directory(&parent) {
                    Ok(upper) => carry(&self.shared, upper.as_fd(), live.as_fd(), name, path),
                    Err(e) => Err(e.into()),
                },
            };
            done += u64::from(moved.is_ok());
        }
        done
    }

    /// How many of the topmost ignored paths were changed.
    pub fn carried(&self) -> u64 {
        self.carried.len() as u64
    }
}

/// Moves one entry; into a directory that is there already, what it holds.
fn carry(
    shared: &Shared,
    upper: BorrowedFd<'_>,
    live: BorrowedFd<'_>,
    name: &[u8],
    path: &WorkspacePath,
) -> std::io::Result<()> {
    check_depth(path)?;
    let Some(Layer::Entry(meta)) = look(upper, name)? else {
        return Ok(());
    };
    let there = stat_at(live, name)?.map(|meta| meta.kind);
    let is_directory = meta.kind == EntryKind::Directory;
    if is_directory && there == Some(EntryKind::Directory) {
        let_in(shared, upper, name, &meta)?;
        let (upper, live) = (open_at(upper, name)?, open_at(live, name)?);
        for inside in names(upper.as_fd())? {
            let child = path.join(&inside).map_err(std::io::Error::other)?;
            carry(shared, upper.as_fd(), live.as_fd(), &inside, &child)?;
        }
        return Ok(());
    }
    if is_directory != (there == Some(EntryKind::Directory)) && there.is_some() {
        return Err(std::io::Error::from(std::io::ErrorKind::AlreadyExists));
    }
    // A directory that moves has its `..` written, so its owner must be let in, too.
    let closed = match is_directory {
        true => let_in(shared, upper, name, &meta)?,
        false => None,
    };
    strip(shared, upper, name, meta.kind, 0)?;
    let how = if there.is_some() {
        Rename::Replace
    } else {
        Rename::NoReplace
    };
    let moved = match shared.seam.rename(upper, name, live, name, how) {
        Err(e) if e.kind() == std::io::ErrorKind::CrossesDevices => {
            if there.is_some() {
                shared.seam.unlink(live, name)?;
            }
            lay::copy(shared, upper, live, name, path, &|_| false, &CancelToken::new()).map_err(std::io::Error::other)
        }
        other => other,
    };
    match closed {
        Some(mode) if moved.is_ok() => set_mode(shared, live, name, mode),
        _ => moved,
    }
}

/// Takes the overlay's own attributes away, which would mean something to another overlay over the live tree.
fn strip(
    shared: &Shared,
    directory: BorrowedFd<'_>,
    name: &[u8],
    kind: EntryKind,
    depth: usize,
) -> std::io::Result<()> {
    if depth > DEEPEST {
        return Err(std::io::Error::from(rustix::io::Errno::NAMETOOLONG));
    }
    if !matches!(kind, EntryKind::File | EntryKind::Directory) {
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(entry) = openat(directory, name, flags, Mode::empty()) else {
        return Ok(());
    };
    let mut list = vec![0_u8; 4096];
    if let Ok(length) = rustix::fs::flistxattr(&entry, &mut list[..]) {
        for attribute in list[..length]
            .split(|&b| b == 0)
            .filter(|a| a.starts_with(OWN_ATTRIBUTES))
        {
            remove_attribute(shared, entry.as_fd(), attribute)?;
        }
    }
    if kind == EntryKind::Directory {
        for inside in names(entry.as_fd())? {
            if let Some(meta) = stat_at(entry.as_fd(), &inside)? {
                strip(shared, entry.as_fd(), &inside, meta.kind, depth + 1)?;
            }
        }
    }
    Ok(())
}

/// Takes an attribute away; who owns an entry may, even one that is not to be written.
fn remove_attribute(shared: &Shared, entry: BorrowedFd<'_>, attribute: &[u8]) -> std::io::Result<()> {
    match shared.seam.remove_xattr(entry, attribute) {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            let mode = rustix::fs::fstat(entry)?.st_mode & 0o7777;
            shared.seam.chmod(entry, mode | 0o200)?;
            let removed = shared.seam.remove_xattr(entry, attribute);
            shared.seam.chmod(entry, mode)?;
            removed
        }
        other => other,
    }
}
