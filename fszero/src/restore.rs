//! Taking back what was published, after a refusal, a cancellation or a crash: one routine for all.
//!
//! It knows only what the journal says and what is there now, looks at each path before it writes, and may be cut off
//! and begun again at any point. Effects are taken back in reverse order; each is the inverse rename or exchange, so the
//! displaced inode itself comes back. Temporaries go only when everything else is back (and durable).

mod captured;
mod effects;
mod purge;
mod ties;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Dir, FileType};
use rustix::io::Errno;
use zero_contracts::files::Restoration;
use zero_contracts::response::PathConflict;
use zero_contracts::{CancelToken, CellId, Error, ErrorKind, Handle, WorkspacePath};

use crate::engine::Shared;
use crate::node::Node;
use crate::order::Unflushed;
use crate::parked;
use crate::publish::{Directories, staging_name, staging_path, temp_name};
use crate::record::{Batch, Effect, Record};
use crate::tree::{io, os};
use crate::widen::Widened;

use purge::{empty, retire};
use ties::{made_in, ties};

pub(crate) use purge::{purge, purge_staging, remove_all};
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
/// Each is over for good before what was published earlier is touched: its renames are told from the tree, which shows
/// something else then. So is what a command did, and of that the journal says so: it has no temporaries that would.
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
    let mut over = Vec::new();
    while let Some((batch, earlier)) = rest.split_last() {
        restorer.batch(batch)?;
        restorer.clear(batch)?;
        over.push(batch);
        rest = earlier;
        if batch.is_of_command() && !earlier.is_empty() {
            let withdrawn = |batch: &Batch| Record::Withdrawn {
                cell: cell.clone(),
                tag: batch.tag,
            };
            restorer.widened.put_back(shared)?;
            // In this order, for the end of a record may be lost: the latest first.
            let records = over.drain(..).map(withdrawn).collect();
            shared.journal.append(records, shared.power())?;
        }
    }
    restorer.widened.put_back(shared)?;
    let mut result = restorer.result;
    result.restored.sort();
    result.restored.dedup();
    Ok(result)
}

impl Restorer<'_> {
    /// Makes durable that a batch is taken back, and removes its temporaries.
    fn clear(&mut self, batch: &Batch) -> Result<(), Error> {
        self.directories.sync()?;
        retire(self.shared, batch)?;
        purge(self.shared, batch.tag)
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
        let mut unflushed = Unflushed::default();
        for (at, effect) in batch.effects.iter().enumerate().rev() {
            if unflushed.before_undo(effect) {
                self.directories.sync()?;
                unflushed = Unflushed::default();
                self.directories.mark(&staging)?;
            }
            unflushed.note(effect);
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

    fn failed(path: &WorkspacePath) -> impl Fn(std::io::Error) -> Error + '_ {
        move |e| io(&e, "restoring", path)
    }
}
