//! Taking back what was published, after a refusal, a cancellation or a crash: one routine for all.
//!
//! It knows only what the journal says and what is there now, looks at each path before it writes, and may be cut off
//! and begun again at any point. Effects are taken back in reverse order; each is the inverse rename or exchange, so the
//! displaced inode itself comes back. Temporaries go only when everything else is back (and durable).

mod captured;
mod ties;

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use zero_contracts::files::Restoration;
use zero_contracts::read::EntryKind;
use zero_contracts::response::PathConflict;
use zero_contracts::{CancelToken, CellId, Error, ErrorKind, Handle, WorkspacePath};

use crate::engine::Shared;
use crate::node::Node;
use crate::parked;
use crate::publish::{Directories, idle_name, idle_path, staging_name, staging_path, temp_name};
use crate::record::{Batch, Effect, Record};
use crate::seam::Rename;
use crate::tree::{io, os, stat_at};
use crate::widen::Widened;

use ties::{Tie, made_in, ties};

pub(crate) use ties::{mark, marked, marker_name};

/// An open directory and a name in it.
type Place = (Arc<OwnedFd>, Vec<u8>);

pub(crate) struct Restorer<'a> {
    shared: &'a Shared,
    directories: Directories<'a>,
    result: Restoration,
    token: CancelToken,
    /// Changes of commands that are taken back are listed with both handles: nobody knows for sure whose they were.
    list_captured: bool,
    /// Directories that an ordinary user had to be let into.
    widened: Widened,
}

/// Takes batches of a cell back, the last first, and removes their temporaries.
///
/// What a command did is told from the tree alone, so it is over for good, and the journal says so, before what was
/// published earlier is touched: taken back again after that, it would bring back what the cell itself had made.
pub(crate) fn restore(
    shared: &Shared,
    cell: &CellId,
    batches: &[Batch],
    list_captured: bool,
) -> Result<Restoration, Error> {
    let mut restorer = Restorer {
        shared,
        directories: Directories::new(shared),
        result: Restoration::default(),
        token: CancelToken::new(),
        list_captured,
        widened: Widened::default(),
    };
    let mut rest = batches;
    let mut done = Vec::new();
    while let Some((batch, earlier)) = rest.split_last() {
        restorer.batch(batch)?;
        done.push(batch);
        rest = earlier;
        if batch.is_of_command() && !earlier.is_empty() {
            let withdrawn = |batch: &&Batch| Record::Withdrawn {
                cell: cell.clone(),
                tag: batch.tag,
            };
            // In this order, for the end of a record may be lost: the latest first.
            let records = done.iter().map(withdrawn).collect();
            restorer.clear(&std::mem::take(&mut done))?;
            restorer.widened.put_back(shared)?;
            shared.journal.append(records, shared.power())?;
        }
    }
    restorer.clear(&done)?;
    restorer.widened.put_back(shared)?;
    let mut result = restorer.result;
    result.restored.sort();
    result.restored.dedup();
    Ok(result)
}

/// Everything is back: from here on nothing is read from the staging directories. Without this a second restoration,
/// after a crash in the middle of a purge, would take what is missing there for what was put in its place, and remove
/// from the tree what was there before the cell.
fn retire(shared: &Shared, batches: &[&Batch]) -> Result<(), Error> {
    let root = shared.tree.root();
    let mut retired = false;
    for batch in batches {
        let idle = idle_name(batch.tag);
        // What a crash left of an earlier retirement.
        remove_all(shared, root, &idle, &idle_path(batch.tag))?;
        match shared
            .seam
            .rename(root, &staging_name(batch.tag), root, &idle, Rename::NoReplace)
        {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(io(&e, "naming", &idle_path(batch.tag))),
            Ok(()) => retired = true,
        }
    }
    if retired && shared.power() {
        shared
            .seam
            .sync_directory(root)
            .map_err(|e| io(&e, "flushing", &WorkspacePath::root()))?;
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
fn empty(shared: &Shared, directory: &OwnedFd, path: &WorkspacePath) -> Result<(), Error> {
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

impl Restorer<'_> {
    /// Makes durable that batches are taken back, and removes their temporaries.
    fn clear(&mut self, batches: &[&Batch]) -> Result<(), Error> {
        self.directories.sync()?;
        retire(self.shared, batches)?;
        batches.iter().try_for_each(|batch| purge(self.shared, batch.tag))
    }

    fn batch(&mut self, batch: &Batch) -> Result<(), Error> {
        let path = staging_path(batch.tag);
        self.widened.enter(self.shared, &WorkspacePath::root())?;
        parked::unpark(self.shared, batch, &mut self.result.conflicts)?;
        let mut staging = match self.shared.tree.directory(&path) {
            Ok(staging) => Some(Arc::new(staging)),
            Err(Errno::NOENT) => None,
            Err(e) => return Err(os(e, "opening", &path)),
        };
        let captured = batch.is_captured();
        if let (true, Some(left)) = (captured, &staging) {
            self.discard(left, &path)?;
        }
        if captured && staging.is_none() {
            let made = self
                .shared
                .seam
                .make_directory(self.shared.tree.root(), &staging_name(batch.tag), 0o700);
            made.map_err(|e| io(&e, "making", &path))?;
            staging = Some(Arc::new(
                self.shared.tree.directory(&path).map_err(|e| os(e, "opening", &path))?,
            ));
        }
        if let Some(staging) = &staging {
            self.directories.mark(staging)?;
        }
        if captured {
            if let Some(staging) = &staging {
                self.captured(batch, staging)?;
            }
            return Ok(());
        }
        let Some(staging) = staging else {
            return Ok(()); // Nothing was begun, or everything is back already.
        };
        let (mut ties, made_in) = (ties(&batch.effects), made_in(&batch.effects));
        let marked = marked(&batch.effects);
        let (mut moved, mut directory_moved) = (false, false);
        // What was taken out of the tree and may not be durably out of it yet.
        let mut uncreated: BTreeSet<Vec<u8>> = BTreeSet::new();
        for (at, effect) in batch.effects.iter().enumerate().rev() {
            // As in publication: what is moved out of a directory must not be lost while that directory's removal is
            // kept, and a path means another directory once one has moved.
            let made_directory = matches!(effect, Effect::Create { after, .. } if after.is_directory());
            // And what comes back must not be taken for what is on its way out below it.
            let back = match effect {
                Effect::Rename { from: path, .. } | Effect::Remove { path, .. } => {
                    let below = [path.as_bytes(), b"/"].concat();
                    let mut range = uncreated.range(below.clone()..);
                    range.next().is_some_and(|path| path.starts_with(&below))
                }
                _ => false,
            };
            if directory_moved || (moved && made_directory) || back {
                self.directories.sync()?;
                (moved, directory_moved) = (false, false);
                uncreated.clear();
                self.directories.mark(&staging)?;
            }
            if let Effect::Create { path, .. } = effect {
                uncreated.insert(path.as_bytes().to_vec());
            }
            if let Effect::Rename { before, .. } = effect {
                moved = true;
                directory_moved |= before.is_directory();
            }
            let mut inside = false;
            for directory in made_in.get(&at).into_iter().flatten() {
                inside |= self.node(staging.as_fd(), &temp_name(*directory), &path)?.is_some();
            }
            if inside {
                continue;
            }
            let tie = ties.remove(&at).unwrap_or_default();
            if !marked.contains(&at) {
                self.effect(effect, &tie, &staging)?;
            } else if self.node(staging.as_fd(), &marker_name(at), &path)?.is_some() {
                // Alone in time: what comes after it in the batch is undone, and what comes before it is not.
                self.directories.sync()?;
                self.directories.mark(&staging)?;
                self.effect(effect, &tie, &staging)?;
                self.directories.sync()?;
                let unmarked = self.shared.seam.unlink(staging.as_fd(), &marker_name(at));
                unmarked.map_err(Self::failed(&path))?;
                self.directories.mark(&staging)?;
                self.directories.sync()?;
                self.directories.mark(&staging)?;
            }
            if matches!(effect, Effect::Rename { .. }) {
                self.directories.forget();
            }
        }
        Ok(())
    }

    /// Removes what an earlier attempt to take back what a command did left in the staging directory. The names will be used
    /// again, so it goes durably. What may be somebody else's becomes an object first.
    fn discard(&self, staging: &OwnedFd, path: &WorkspacePath) -> Result<(), Error> {
        for entry in Dir::read_from(staging).map_err(|e| os(e, "listing", path))? {
            let entry = entry.map_err(|e| os(e, "listing", path))?;
            if entry.file_type() == FileType::RegularFile {
                let kept = self
                    .shared
                    .keep_file(staging.as_fd(), entry.file_name().to_bytes(), path);
                match kept {
                    // Nobody could read it before either.
                    Err(e) if e.kind == ErrorKind::Denied => {}
                    kept => drop(kept?),
                }
            }
        }
        empty(self.shared, staging, path)?;
        if self.shared.power() {
            let flushed = self.shared.seam.sync_directory(staging.as_fd());
            flushed.map_err(|e| io(&e, "flushing", path))?;
        }
        Ok(())
    }

    fn node(&self, directory: BorrowedFd<'_>, name: &[u8], path: &WorkspacePath) -> Result<Option<Node>, Error> {
        self.shared.node_at(directory, name, path, false, &self.token)
    }

    /// The directory of a path; none if that is not there (any more).
    fn of(&mut self, path: &WorkspacePath) -> Result<Option<Place>, Error> {
        self.widened.enter(self.shared, path)?;
        match self.directories.of(path, true) {
            Ok(found) => Ok(Some(found)),
            Err(e)
                if matches!(
                    e.kind,
                    ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::OutsideWorkspace
                ) =>
            {
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    fn conflict(&mut self, path: &WorkspacePath, detail: String, ours: Option<Handle>, theirs: Option<Handle>) {
        self.result.conflicts.push(PathConflict {
            path: path.to_string(),
            detail,
            ours,
            theirs,
        });
    }

    fn restored(&mut self, path: &WorkspacePath) {
        self.result.restored.push(path.clone());
    }

    /// Keeps what waits in the staging directory as an object, because its path is taken.
    fn keep(
        &self,
        staging: BorrowedFd<'_>,
        name: &[u8],
        node: Option<&Node>,
        path: &WorkspacePath,
    ) -> Result<Option<Handle>, Error> {
        match node {
            Some(Node::File { .. }) => match self.shared.keep_file(staging, name, path) {
                // Nobody could read it before either.
                Err(e) if e.kind == ErrorKind::Denied => Ok(None),
                kept => kept.map(|digest| Some(Handle::blob(digest))),
            },
            _ => Ok(None),
        }
    }

    fn touch(&self, directory: BorrowedFd<'_>, name: &[u8], node: Option<&Node>) {
        if matches!(node, Some(Node::File { .. })) {
            // A path that is back with an old time would make build tools trust stale artefacts. Who may not set the
            // time (of a file of another owner) leaves it.
            let _ = self.shared.seam.touch(directory, name);
        }
    }

    fn effect(&mut self, effect: &Effect, tie: &Tie, staging: &Arc<OwnedFd>) -> Result<(), Error> {
        match effect {
            Effect::Create { path, temp, after } => self.uncreate(path, &temp_name(*temp), after, staging),
            Effect::Replace {
                path,
                temp,
                before,
                after,
            } => self.unreplace(path, &temp_name(*temp), before, after, staging),
            Effect::Remove { path, temp, .. } => self.unremove(path, &temp_name(*temp), staging),
            Effect::Rename { from, to, before } => self.unrename(from, to, before, tie, staging),
            Effect::Chmod { path, before, after } => self.unchmod(path, before, after),
            Effect::Captured { .. } => Ok(()),
        }
    }

    fn failed(path: &WorkspacePath) -> impl Fn(std::io::Error) -> Error + '_ {
        move |e| io(&e, "restoring", path)
    }

    fn uncreate(
        &mut self,
        path: &WorkspacePath,
        temp: &[u8],
        after: &Node,
        staging: &Arc<OwnedFd>,
    ) -> Result<(), Error> {
        if self.node(staging.as_fd(), temp, path)?.is_some() {
            return Ok(()); // It never left the staging directory, or is back there.
        }
        let Some((directory, name)) = self.of(path)? else {
            return Ok(());
        };
        let live = self.node(directory.as_fd(), &name, path)?;
        if live.is_none() {
            return Ok(()); // Somebody removed it, or it was never made.
        }
        let seam = &self.shared.seam;
        let changed = |live: &Option<Node>| {
            format!(
                "`{path}` was made by this cell and is {} now; it was left as it is",
                Node::describe(live.as_ref())
            )
        };
        let same = match (after, &live) {
            (Node::Directory { .. }, Some(Node::Directory { .. })) => {
                self.shared.is_empty_directory(directory.as_fd(), &name, path)?
            }
            _ => live.as_ref() == Some(after),
        };
        if !same {
            let theirs = self.shared.keep_live(path);
            let detail = if after.is_directory() && live.as_ref().is_some_and(Node::is_directory) {
                format!(
                    "`{path}` was made by this cell and holds something of somebody else's now; it was left as it is"
                )
            } else {
                changed(&live)
            };
            self.conflict(path, detail, after.handle(), theirs);
            return Ok(());
        }
        seam.rename(directory.as_fd(), &name, staging.as_fd(), temp, Rename::NoReplace)
            .map_err(Self::failed(path))?;
        // Between the look and the rename somebody may have changed it.
        let moved = self.node(staging.as_fd(), temp, path)?;
        let still = match after {
            Node::Directory { .. } => {
                self.directories.forget();
                moved.as_ref().is_some_and(Node::is_directory)
                    && self.shared.is_empty_directory(staging.as_fd(), temp, path)?
            }
            _ => moved.as_ref() == Some(after),
        };
        if still {
            self.restored(path);
            return Ok(());
        }
        match seam.rename(staging.as_fd(), temp, directory.as_fd(), &name, Rename::NoReplace) {
            Err(e) if e.raw_os_error() != Some(Errno::EXIST.raw_os_error()) => return Err(Self::failed(path)(e)),
            _ => {}
        }
        let theirs = self.shared.keep_live(path);
        self.conflict(path, changed(&moved), after.handle(), theirs);
        Ok(())
    }

    fn unreplace(
        &mut self,
        path: &WorkspacePath,
        temp: &[u8],
        before: &Node,
        after: &Node,
        staging: &Arc<OwnedFd>,
    ) -> Result<(), Error> {
        let Some(waiting) = self.node(staging.as_fd(), temp, path)? else {
            return Ok(());
        };
        if waiting == *after {
            return Ok(()); // The new version waits: it was never exchanged, or is back.
        }
        let located = self.of(path)?;
        let live = match &located {
            Some((directory, name)) => self.node(directory.as_fd(), name, path)?,
            None => None,
        };
        if let (Some((directory, name)), true) = (&located, live.as_ref() == Some(after)) {
            let exchange = || {
                self.shared
                    .seam
                    .rename(staging.as_fd(), temp, directory.as_fd(), name, Rename::Exchange)
                    .map_err(Self::failed(path))
            };
            exchange()?;
            let displaced = self.node(staging.as_fd(), temp, path)?;
            if displaced.as_ref() == Some(after) {
                self.touch(directory.as_fd(), name, Some(&waiting));
                self.restored(path);
                return Ok(());
            }
            // Somebody wrote in between: theirs stays.
            exchange()?;
        } else if live.as_ref() == Some(before) {
            return Ok(()); // A torn temporary: the exchange never came.
        }
        let ours = self.keep(staging.as_fd(), temp, Some(&waiting), path)?;
        let theirs = self.shared.keep_live(path);
        let detail = format!(
            "`{path}` is {} and this cell left {}: it was not overwritten; `ours` is what was there before the cell",
            Node::describe(live.as_ref()),
            Node::describe(Some(after))
        );
        self.conflict(path, detail, ours, theirs);
        Ok(())
    }

    fn unremove(&mut self, path: &WorkspacePath, temp: &[u8], staging: &Arc<OwnedFd>) -> Result<(), Error> {
        let Some(waiting) = self.node(staging.as_fd(), temp, path)? else {
            return Ok(());
        };
        let Some((directory, name)) = self.of(path)? else {
            let ours = self.keep(staging.as_fd(), temp, Some(&waiting), path)?;
            self.conflict(
                path,
                format!("the directory of `{path}` is gone; `ours` is what was there"),
                ours,
                None,
            );
            return Ok(());
        };
        match self
            .shared
            .seam
            .rename(staging.as_fd(), temp, directory.as_fd(), &name, Rename::NoReplace)
        {
            Ok(()) => {
                self.directories.forget();
                self.touch(directory.as_fd(), &name, Some(&waiting));
                self.restored(path);
                Ok(())
            }
            Err(e) if e.raw_os_error() == Some(Errno::EXIST.raw_os_error()) => {
                let ours = self.keep(staging.as_fd(), temp, Some(&waiting), path)?;
                let theirs = self.shared.keep_live(path);
                let detail = format!(
                    "`{path}` was removed by this cell and made anew by somebody else; `ours` is what was there before"
                );
                self.conflict(path, detail, ours, theirs);
                Ok(())
            }
            Err(e) => Err(Self::failed(path)(e)),
        }
    }

    fn unrename(
        &mut self,
        from: &WorkspacePath,
        to: &WorkspacePath,
        before: &Node,
        tie: &Tie,
        staging: &Arc<OwnedFd>,
    ) -> Result<(), Error> {
        let waits = |temp: Option<u32>| -> Result<Option<bool>, Error> {
            let Some(temp) = temp else { return Ok(None) };
            Ok(Some(self.node(staging.as_fd(), &temp_name(temp), from)?.is_some()))
        };
        if waits(tie.made)? == Some(true) || waits(tie.removed)? == Some(false) {
            return Ok(()); // What it moves was not there yet, or its target was still taken: it never came to it.
        }
        let Some((target, new)) = self.of(to)? else {
            return Ok(());
        };
        let Some(moved) = self.node(target.as_fd(), &new, to)? else {
            return Ok(());
        };
        let Some((source, old)) = self.of(from)? else {
            return Ok(());
        };
        let at_source = self.node(source.as_fd(), &old, from)?;
        let same = if before.is_directory() {
            moved.is_directory()
        } else {
            moved == *before
        };
        if let Some(there) = at_source {
            if same && there != *before && !before.is_directory() && !tie.tied {
                let theirs = self.shared.keep_live(from);
                let detail =
                    format!("`{from}` was moved to `{to}` by this cell and made anew by somebody else; both were left");
                self.conflict(from, detail, moved.handle(), theirs);
            }
            return Ok(());
        }
        if tie.tied && !same {
            return Ok(()); // What is there need not be what was moved.
        }
        match self
            .shared
            .seam
            .rename(target.as_fd(), &new, source.as_fd(), &old, Rename::NoReplace)
        {
            Err(e) if e.raw_os_error() == Some(Errno::EXIST.raw_os_error()) => {
                self.conflict(
                    from,
                    format!("`{from}` was made anew by somebody else; `{to}` was left"),
                    None,
                    None,
                );
                return Ok(());
            }
            other => other.map_err(Self::failed(from))?,
        }
        self.touch(source.as_fd(), &old, Some(&moved));
        self.restored(from);
        self.restored(to);
        if !same {
            let theirs = self.shared.keep_live(from);
            self.conflict(
                from,
                format!("`{to}` was changed by somebody else; it is back at `{from}` with that change"),
                None,
                theirs,
            );
        }
        Ok(())
    }

    fn unchmod(&mut self, path: &WorkspacePath, before: &Node, after: &Node) -> Result<(), Error> {
        if let Some(parent) = path.parent() {
            self.widened.enter(self.shared, &parent)?;
        }
        if let Some((was, _)) = self.widened.forget(path) {
            crate::widen::set(self.shared, path, was)?;
        }
        let handle = match self.shared.tree.handle(path) {
            Ok(handle) => handle,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(e) => return Err(os(e, "opening", path)),
        };
        let meta = crate::node::Meta::new(&rustix::fs::fstat(&handle).map_err(|e| os(e, "looking at", path))?);
        if meta.kind == before.kind() && meta.mode == after.mode() {
            self.shared
                .seam
                .chmod(handle.as_fd(), before.mode())
                .map_err(Self::failed(path))?;
            self.shared.flush_mode(path)?;
            self.restored(path);
        } else if meta.kind == before.kind() && meta.mode != before.mode() {
            let detail = format!(
                "`{path}` has mode {:o}, and this cell had set {:o}; it was left as it is",
                meta.mode,
                after.mode()
            );
            self.conflict(path, detail, None, None);
        }
        Ok(())
    }
}
