//! The end of a restoration: the staging directory of a batch is retired, then removed with all it holds.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use zero_contracts::read::EntryKind;
use zero_contracts::{Error, WorkspacePath};

use crate::engine::Shared;
use crate::parked;
use crate::publish::{idle_name, idle_path, staging_name, staging_path};
use crate::record::Batch;
use crate::seam::Rename;
use crate::tree::{io, os, stat_at};

/// Everything is back: from here on nothing is read from the staging directory. Without this a second restoration,
/// after a crash in the middle of a purge, would take what is missing there for what was put in its place, and remove
/// from the tree what was there before the cell.
pub(super) fn retire(shared: &Shared, batch: &Batch) -> Result<(), Error> {
    let root = shared.tree.root();
    let idle = idle_name(batch.tag);
    // What a crash left of an earlier retirement.
    remove_all(shared, root, &idle, &idle_path(batch.tag))?;
    match shared
        .seam
        .rename(root, &staging_name(batch.tag), root, &idle, Rename::NoReplace)
    {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|e| io(&e, "naming", &idle_path(batch.tag)))?,
    }
    if shared.power() {
        let flushed = shared.seam.sync_directory(root);
        flushed.map_err(|e| io(&e, "flushing", &WorkspacePath::root()))?;
    }
    Ok(())
}

/// Removes the staging directory of a batch and all it holds, wherever it is.
pub(crate) fn purge(shared: &Shared, tag: u64) -> Result<(), Error> {
    parked::purge(shared, tag)?;
    purge_staging(shared, tag)
}

/// Removes an entry of a directory of ours, with all it holds; nothing if it is not there.
pub(crate) fn remove_all(
    shared: &Shared,
    directory: BorrowedFd<'_>,
    name: &[u8],
    path: &WorkspacePath,
) -> Result<(), Error> {
    let Some(meta) = stat_at(directory, name).map_err(|e| os(e, "looking at", path))? else {
        return Ok(());
    };
    let fail = |e: std::io::Error| io(&e, "removing a temporary of", path);
    if meta.kind != EntryKind::Directory {
        return shared.seam.unlink(directory, name).map_err(fail);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(directory, name, flags, Mode::empty()) {
        Ok(child) => empty(shared, &child, path)?,
        // A directory that may not be read: it goes if it is empty.
        Err(Errno::ACCESS) => {}
        Err(e) => return Err(os(e, "opening", path)),
    }
    shared.seam.remove_directory(directory, name).map_err(fail)
}

/// Removes a staging directory in the tree and all it holds.
pub(crate) fn purge_staging(shared: &Shared, tag: u64) -> Result<(), Error> {
    for (name, path) in [(staging_name(tag), staging_path(tag)), (idle_name(tag), idle_path(tag))] {
        let staging = match shared.tree.directory(&path) {
            Ok(staging) => staging,
            Err(Errno::NOENT) => continue,
            Err(e) => return Err(os(e, "opening", &path)),
        };
        empty(shared, &staging, &path)?;
        shared
            .seam
            .remove_directory(shared.tree.root(), &name)
            .map_err(|e| io(&e, "removing", &path))?;
    }
    Ok(())
}

/// Removes everything in a directory of ours. What was put into a directory that we had moved aside goes with it: only
/// who holds a descriptor of it can have done that.
pub(super) fn empty(shared: &Shared, directory: &OwnedFd, path: &WorkspacePath) -> Result<(), Error> {
    let fail = |e: Errno| os(e, "listing", path);
    let (mut leaves, mut directories) = (Vec::new(), Vec::new());
    for entry in Dir::read_from(directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_bytes();
        match entry.file_type() {
            _ if matches!(name, b"." | b"..") => {}
            FileType::Directory | FileType::Unknown => directories.push(name.to_vec()),
            _ => leaves.push(name.to_vec()),
        }
    }
    let removed = shared.seam.unlink_together(directory.as_fd(), &leaves);
    removed.map_err(|e| io(&e, "removing a temporary of", path))?;
    for name in directories {
        remove_all(shared, directory.as_fd(), &name, path)?;
    }
    Ok(())
}
