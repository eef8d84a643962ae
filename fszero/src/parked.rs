//! Where displaced inodes wait while a command runs: out of the workspace.
//!
//! A command may read, change, remove or commit whatever lies in the tree, so a published batch's staging directory is
//! moved into the store's `parked/` before one starts (`<tag>`). Where the store lies on another file system, the bytes
//! become objects, the staging directory goes, and `<tag>.objects` says that it has to be made anew. Taking back begins
//! with [`unpark`]: every preimage is compared with the journal, and made anew from its object where it is not what it
//! has to be; only then the staging directory is in the tree again, complete. Each step may be cut off and begun again.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags, openat};
use rustix::io::Errno;
use zero_contracts::response::PathConflict;
use zero_contracts::{CancelToken, Error, WorkspacePath};

use crate::engine::Shared;
use crate::node::Node;
use crate::overlay::Body;
use crate::publish::{staging_name, staging_path, temp_name};
use crate::record::{Batch, Effect};
use crate::restore;
use crate::seam::Rename;
use crate::tree::{changing, io, os, stat_at};

/// Ends the name that stands for preimages which are objects only.
const OBJECTS: &[u8] = b".objects";

fn moved_name(tag: u64) -> Vec<u8> {
    format!("{tag:016x}").into_bytes()
}

fn objects_name(tag: u64) -> Vec<u8> {
    [&moved_name(tag)[..], OBJECTS].concat()
}

/// What waits for restoration once an effect is published: its path, its name, what it is.
fn displaced(effect: &Effect) -> Option<(&WorkspacePath, u32, &Node)> {
    match effect {
        Effect::Replace { path, temp, before, .. } | Effect::Remove { path, temp, before } => {
            Some((path, *temp, before))
        }
        _ => None,
    }
}

fn open_directory(at: BorrowedFd<'_>, name: &[u8], path: &WorkspacePath) -> Result<Option<OwnedFd>, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(at, name, flags, Mode::empty()) {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(os(e, "opening", path)),
    }
}

/// Takes the staging directory of a wholly published batch out of the tree.
pub(crate) fn park(shared: &Shared, batch: &Batch) -> Result<(), Error> {
    let path = staging_path(batch.tag);
    let (root, parked) = (shared.tree.root(), shared.parked.as_fd());
    let name = staging_name(batch.tag);
    let Some(staging) = open_directory(root, &name, &path)? else {
        return Ok(());
    };
    for (at, temp, before) in batch.effects.iter().filter_map(displaced) {
        if let Node::File { digest, .. } = before
            && !shared.store.has(digest)?
            && shared.keep_file(staging.as_fd(), &temp_name(temp), at)? != *digest
        {
            return Err(changing(at));
        }
    }
    if shared.power() {
        let pending = shared.store.take_pending();
        if let Err(e) = shared.store.make_durable(&pending) {
            shared.store.put_back(pending);
            return Err(e);
        }
    }
    let fail = |e: std::io::Error| io(&e, "moving out of the way", &path);
    match shared
        .seam
        .rename(root, &name, parked, &moved_name(batch.tag), Rename::NoReplace)
    {
        Err(e) if e.raw_os_error() == Some(Errno::XDEV.raw_os_error()) => {
            shared
                .seam
                .make_directory(parked, &objects_name(batch.tag), 0o700)
                .map_err(fail)?;
            if shared.power() {
                shared.seam.sync_directory(parked).map_err(fail)?;
            }
            restore::purge_staging(shared, batch.tag)
        }
        other => other.map_err(fail),
    }
}

/// Brings the staging directory of a parked batch back, each preimage checked against the journal. What cannot be had
/// any more is a conflict.
pub(crate) fn unpark(shared: &Shared, batch: &Batch, conflicts: &mut Vec<PathConflict>) -> Result<(), Error> {
    let path = staging_path(batch.tag);
    let (root, parked) = (shared.tree.root(), shared.parked.as_fd());
    let name = staging_name(batch.tag);
    let fail = |e: std::io::Error| io(&e, "bringing back", &path);
    if let Some(waiting) = open_directory(parked, &moved_name(batch.tag), &path)? {
        rebuild(shared, batch, &waiting, conflicts)?;
        shared
            .seam
            .rename(parked, &moved_name(batch.tag), root, &name, Rename::NoReplace)
            .map_err(fail)?;
    } else if stat_at(parked, &objects_name(batch.tag))
        .map_err(|e| os(e, "looking at", &path))?
        .is_some()
    {
        let staging = match open_directory(root, &name, &path)? {
            Some(staging) => staging,
            None => {
                shared.seam.make_directory(root, &name, 0o700).map_err(fail)?;
                shared.tree.directory(&path).map_err(|e| os(e, "opening", &path))?
            }
        };
        rebuild(shared, batch, &staging, conflicts)?;
        if shared.power() {
            shared.seam.sync_directory(root).map_err(fail)?;
        }
        shared
            .seam
            .remove_directory(parked, &objects_name(batch.tag))
            .map_err(fail)?;
    } else {
        return Ok(());
    }
    if shared.power() {
        shared.seam.sync_directory(root).map_err(fail)?;
        shared.seam.sync_directory(parked).map_err(fail)?;
    }
    Ok(())
}

/// Makes what waits in a staging directory what the journal says.
fn rebuild(shared: &Shared, batch: &Batch, staging: &OwnedFd, conflicts: &mut Vec<PathConflict>) -> Result<(), Error> {
    let token = CancelToken::new();
    for (path, temp, before) in batch.effects.iter().filter_map(displaced) {
        let name = temp_name(temp);
        // What cannot be read is not what was put there.
        let found = shared.node_at(staging.as_fd(), &name, path, false, &token);
        let whole = matches!(&found, Ok(Some(node)) if node == before);
        if whole && (!before.is_directory() || shared.is_empty_directory(staging.as_fd(), &name, path)?) {
            continue;
        }
        restore::remove_all(shared, staging.as_fd(), &name, path)?;
        if let Err(e) = remake(shared, staging.as_fd(), &name, path, before, &token) {
            restore::remove_all(shared, staging.as_fd(), &name, path)?;
            conflicts.push(PathConflict {
                path: path.to_string(),
                detail: format!("what `{path}` was is lost and could not be made anew: {}", e.detail),
                ours: None,
                theirs: shared.keep_live(path),
            });
        }
    }
    for at in restore::marked(&batch.effects) {
        let there = stat_at(staging.as_fd(), &restore::marker_name(at))
            .map_err(|e| os(e, "looking at", &staging_path(batch.tag)))?;
        if there.is_none() {
            // The whole batch was published.
            restore::mark(shared, staging, at, &staging_path(batch.tag))?;
        }
    }
    if shared.power() {
        let synced = shared.seam.sync_directory(staging.as_fd());
        synced.map_err(|e| io(&e, "flushing", &staging_path(batch.tag)))?;
    }
    Ok(())
}

fn remake(
    shared: &Shared,
    staging: BorrowedFd<'_>,
    name: &[u8],
    path: &WorkspacePath,
    node: &Node,
    token: &CancelToken,
) -> Result<(), Error> {
    let seam = &shared.seam;
    let fail = |e: std::io::Error| io(&e, "making anew", path);
    match node {
        Node::Directory { mode } => {
            seam.make_directory(staging, name, 0o700).map_err(fail)?;
            if let Some(made) = open_directory(staging, name, path)? {
                seam.chmod(made.as_fd(), *mode).map_err(fail)?;
            }
        }
        Node::Symlink { target } => seam.symlink(target, staging, name).map_err(fail)?,
        Node::File { mode, digest, bytes } => {
            let file = seam.create(staging, name, 0o600).map_err(fail)?;
            shared.copy_body(&Body::Object, digest, *bytes, file.as_fd(), path, token)?;
            seam.chmod(file.as_fd(), *mode).map_err(fail)?;
            if shared.power() {
                seam.sync(file.as_fd()).map_err(fail)?;
            }
        }
        Node::Other => return Err(Error::invalid("a device cannot be made anew").with_path(path)),
    }
    Ok(())
}

/// Removes what a batch that is over left parked.
pub(crate) fn purge(shared: &Shared, tag: u64) -> Result<(), Error> {
    let path = staging_path(tag);
    for name in [moved_name(tag), objects_name(tag)] {
        restore::remove_all(shared, shared.parked.as_fd(), &name, &path)?;
    }
    Ok(())
}

/// The tags of everything that is parked.
pub(crate) fn tags(shared: &Shared) -> Result<Vec<u64>, Error> {
    let fail = |e| os(e, "listing", &WorkspacePath::root());
    let mut tags = Vec::new();
    let again = open_directory(shared.parked.as_fd(), b".", &WorkspacePath::root())?;
    let Some(again) = again else { return Ok(tags) };
    for entry in Dir::read_from(&again).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_bytes();
        let hex = std::str::from_utf8(name.strip_suffix(OBJECTS).unwrap_or(name)).ok();
        tags.extend(hex.and_then(|hex| u64::from_str_radix(hex, 16).ok()));
    }
    Ok(tags)
}
