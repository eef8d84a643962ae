//! Rolling a committed batch forward.
//!
//! The record of a commit is written last of all, so mostly the tree is whole and only temporaries are left. But a plain
//! batch's renames are flushed at the same time as the record: a loss of power may keep the record and lose some of them.
//! Everything that they need was durable before, in the staging directory, and is there still.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use zero_contracts::{CancelToken, Error, ErrorKind, WorkspacePath};

use crate::engine::Shared;
use crate::node::Node;
use crate::publish::{Directories, staging_path, temp_name};
use crate::record::{Batch, Effect};
use crate::round::Round;
use crate::seam::Rename;
use crate::store::INLINE_BYTES;
use crate::tree::{io, os};

/// Carries out the effects of a committed batch that are not there, and makes it durable. What somebody else put at a
/// path meanwhile stays; then this batch's version becomes an object.
pub(super) fn complete(shared: &Shared, batch: &Batch) -> Result<(), Error> {
    if !batch.is_plain() {
        return Ok(());
    }
    let staging = match shared.tree.directory(&staging_path(batch.tag)) {
        Ok(staging) => Arc::new(staging),
        Err(Errno::NOENT) => return Ok(()),
        Err(e) => return Err(os(e, "opening", &staging_path(batch.tag))),
    };
    let mut directories = Directories::new(shared);
    directories.mark(&staging)?;
    for effect in &batch.effects {
        match effect {
            Effect::Create { path, temp, after } => {
                one(shared, path, &temp_name(*temp), None, after, &staging, &mut directories)?
            }
            Effect::Replace {
                path,
                temp,
                before,
                after,
            } => one(
                shared,
                path,
                &temp_name(*temp),
                Some(before),
                after,
                &staging,
                &mut directories,
            )?,
            _ => {}
        }
    }
    if !shared.power() {
        return Ok(());
    }
    let objects = shared.store.take_pending_large();
    let mut round = Round::default();
    let gathered = shared.store.to_flush(&objects, &mut round);
    gathered
        .and_then(|()| directories.sync_with(&mut round))
        .inspect_err(|_| shared.store.put_back(objects))
}

fn one(
    shared: &Shared,
    path: &WorkspacePath,
    temp: &[u8],
    before: Option<&Node>,
    after: &Node,
    staging: &Arc<OwnedFd>,
    directories: &mut Directories<'_>,
) -> Result<(), Error> {
    let token = CancelToken::new();
    let waiting = shared.node_at(staging.as_fd(), temp, path, false, &token)?;
    if waiting.as_ref() != Some(after) {
        if let (Some(Node::File { bytes, .. }), true) = (before, waiting.as_ref() == before)
            && *bytes > INLINE_BYTES
        {
            // It was carried out. Its preimage was to become durable at the same time, too: for a later undo.
            shared.keep_file(staging.as_fd(), temp, path)?;
        }
        return Ok(());
    }
    let (directory, name) = match directories.of(path, true) {
        Err(e)
            if matches!(
                e.kind,
                ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::OutsideWorkspace
            ) =>
        {
            return keep(shared, staging, temp, after, path);
        }
        found => found?,
    };
    let how = if before.is_some() {
        Rename::Exchange
    } else {
        Rename::NoReplace
    };
    let rename = || {
        let (from, to) = (staging.as_fd(), directory.as_fd());
        shared.seam.rename(from, temp, to, &name, how)
    };
    let fail = |e: std::io::Error| io(&e, "completing", path);
    if shared.node_at(directory.as_fd(), &name, path, false, &token)?.as_ref() != before {
        return keep(shared, staging, temp, after, path);
    }
    match rename() {
        Err(e) if e.raw_os_error() == Some(Errno::EXIST.raw_os_error()) || e.kind() == std::io::ErrorKind::NotFound => {
            return keep(shared, staging, temp, after, path);
        }
        done => done.map_err(fail)?,
    }
    if before.is_none() {
        return Ok(());
    }
    let displaced = shared.node_at(staging.as_fd(), temp, path, true, &token)?;
    if displaced.as_ref() != before {
        // Somebody wrote between the look and the exchange: theirs stays.
        rename().map_err(fail)?;
        return keep(shared, staging, temp, after, path);
    }
    Ok(())
}

/// Keeps what cannot be put in its place.
fn keep(shared: &Shared, staging: &Arc<OwnedFd>, temp: &[u8], after: &Node, path: &WorkspacePath) -> Result<(), Error> {
    if matches!(after, Node::File { .. }) {
        shared.keep_file(staging.as_fd(), temp, path)?;
    }
    Ok(())
}
