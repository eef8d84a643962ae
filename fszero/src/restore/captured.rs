//! Taking back what a command did: by content, for the command did not keep the inodes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use zero_contracts::read::EntryKind;
use zero_contracts::{Error, WorkspacePath};

use super::Restorer;
use crate::node::Node;
use crate::overlay::Body;
use crate::publish::temp_name;
use crate::record::{Batch, Effect};
use crate::retained::{self, is_git_object};
use crate::seam::Rename;
use crate::tree::{os, stat_at};

impl Restorer<'_> {
    /// Takes back what a command did. The old content comes from objects: the command did not keep the inodes.
    pub(super) fn captured(&mut self, batch: &Batch, staging: &Arc<OwnedFd>) -> Result<(), Error> {
        // First what the command made, deepest first; then what it changed or removed, from the top down.
        let mut made = Vec::new();
        let mut lost = Vec::new();
        for effect in &batch.effects {
            let Effect::Captured {
                path,
                temp,
                before,
                after,
            } = effect
            else {
                continue;
            };
            let replaces_kind = matches!((before, after), (Some(b), Some(a)) if b.kind() != a.kind());
            if let Some(after) = after
                && (before.is_none() || replaces_kind)
            {
                made.push((path, *temp, after));
            }
            if let Some(before) = before {
                lost.push((path, *temp, before, after.as_ref().filter(|_| !replaces_kind)));
            }
        }
        made.sort_by(|a, b| b.0.cmp(a.0));
        lost.sort_by(|a, b| a.0.cmp(b.0));
        // The names 0… of the batch are for what is put back, and as many more for what goes.
        let offset = batch.effects.len() as u32;
        for (path, temp, after) in made {
            self.displace_captured(path, &temp_name(temp + offset), after, staging)?;
        }
        for (path, temp, before, after) in lost.iter().filter(|(path, ..)| !path.is_root()) {
            self.put_captured(path, *temp, before, *after, staging)?;
        }
        // Modes of directories last: a read-only one could not have been filled.
        for (path, _, before, _) in lost.iter().rev() {
            if path.is_root() {
                // Temporaries have to go from it first.
                let now = crate::widen::root_mode(self.shared)?;
                self.widened.modes.insert((*path).clone(), (before.mode(), now));
                if now != before.mode() {
                    self.restored(path);
                }
                continue;
            }
            if before.is_directory() {
                self.widened.forget(path);
            }
            if let Node::Directory { mode } = before
                && let Ok(handle) = self.shared.tree.handle(path)
                && let Ok(stat) = rustix::fs::fstat(&handle)
                && (stat.st_mode & 0o7777) != *mode
            {
                self.shared
                    .seam
                    .chmod(handle.as_fd(), *mode)
                    .map_err(Self::failed(path))?;
                self.shared.flush_mode(path)?;
            }
        }
        Ok(())
    }

    fn note_captured(&mut self, path: &WorkspacePath, before: Option<&Node>, found: Option<&Node>) {
        self.restored(path);
        if self.list_captured && found.is_some() {
            let detail = format!(
                "{} was found at `{path}`, made by a command or meanwhile by somebody else; it was taken back",
                Node::describe(found)
            );
            self.conflict(
                path,
                detail,
                before.and_then(Node::handle),
                found.and_then(Node::handle),
            );
        }
    }

    /// What a live path holds, as the manifest of a capture records it.
    fn live(&self, directory: BorrowedFd<'_>, name: &[u8], path: &WorkspacePath) -> Result<Option<Node>, Error> {
        if is_git_object(path)
            && let Some(meta) = stat_at(directory, name).map_err(|e| os(e, "looking at", path))?
            && meta.kind == EntryKind::File
        {
            return Ok(Some(retained::node(path, &meta)));
        }
        self.node(directory, name, path)
    }

    fn displace_captured(
        &mut self,
        path: &WorkspacePath,
        temp: &[u8],
        after: &Node,
        staging: &Arc<OwnedFd>,
    ) -> Result<(), Error> {
        let Some((directory, name)) = self.of(path)? else {
            return Ok(());
        };
        let Some(live) = self.live(directory.as_fd(), &name, path)? else {
            return Ok(());
        };
        let same = match after {
            Node::Directory { .. } => live.is_directory(),
            _ => live == *after,
        };
        if !same {
            let theirs = self.shared.keep_live(path);
            self.conflict(
                path,
                format!("`{path}` changed after the command that made it; it was left as it is"),
                after.handle(),
                theirs,
            );
            return Ok(());
        }
        if live.is_directory() {
            match self.shared.seam.remove_directory(directory.as_fd(), &name) {
                Ok(()) => {
                    self.directories.forget();
                    self.note_captured(path, None, None);
                }
                Err(e) if e.raw_os_error() == Some(Errno::NOTEMPTY.raw_os_error()) => {
                    self.conflict(
                        path,
                        format!("the directory `{path}` made by a command holds something else now; it was left"),
                        None,
                        None,
                    );
                }
                Err(e) => return Err(Self::failed(path)(e)),
            }
            return Ok(());
        }
        if matches!(live, Node::File { .. }) && !is_git_object(path) {
            self.keep(directory.as_fd(), &name, Some(&live), path)?;
        }
        if self.node(staging.as_fd(), temp, path)?.is_some() {
            self.shared
                .seam
                .unlink(staging.as_fd(), temp)
                .map_err(Self::failed(path))?;
        }
        self.shared
            .seam
            .rename(directory.as_fd(), &name, staging.as_fd(), temp, Rename::NoReplace)
            .map_err(Self::failed(path))?;
        self.note_captured(path, None, Some(&live));
        Ok(())
    }

    fn put_captured(
        &mut self,
        path: &WorkspacePath,
        temp: u32,
        before: &Node,
        after: Option<&Node>,
        staging: &Arc<OwnedFd>,
    ) -> Result<(), Error> {
        let Some((directory, name)) = self.of(path)? else {
            self.conflict(
                path,
                format!("the directory of `{path}` could not be put back"),
                before.handle(),
                None,
            );
            return Ok(());
        };
        let live = self.live(directory.as_fd(), &name, path)?;
        if live.as_ref() == Some(before) {
            return Ok(());
        }
        let expected = match (&live, after) {
            (Some(live), Some(after)) if after.is_directory() => live.is_directory(),
            (live, after) => live.as_ref() == after,
        };
        if !expected {
            let theirs = self.shared.keep_live(path);
            let detail = format!(
                "`{path}` is {} and the command left {}: it was not overwritten",
                Node::describe(live.as_ref()),
                Node::describe(after)
            );
            self.conflict(path, detail, before.handle(), theirs);
            return Ok(());
        }
        let seam = &self.shared.seam;
        let temp = temp_name(temp);
        match before {
            Node::Directory { .. } => {
                if live.is_none() {
                    seam.make_directory(directory.as_fd(), &name, 0o700)
                        .map_err(Self::failed(path))?;
                }
                self.note_captured(path, Some(before), None);
                return Ok(());
            }
            Node::Symlink { target } => {
                if self.node(staging.as_fd(), &temp, path)?.is_some() {
                    seam.unlink(staging.as_fd(), &temp).map_err(Self::failed(path))?;
                }
                seam.symlink(target, staging.as_fd(), &temp)
                    .map_err(Self::failed(path))?;
            }
            Node::File { .. } if is_git_object(path) => {
                if self.node(staging.as_fd(), &temp, path)?.is_some() {
                    seam.unlink(staging.as_fd(), &temp).map_err(Self::failed(path))?;
                }
                if !retained::give_back(self.shared, path, before, staging.as_fd(), &temp)? {
                    self.conflict(path, format!("the object of git `{path}` was not retained"), None, None);
                    return Ok(());
                }
            }
            Node::File { mode, digest, bytes } => {
                if !self.shared.store.has(digest)? {
                    self.conflict(
                        path,
                        format!("the bytes that `{path}` had were not kept"),
                        None,
                        live.as_ref().and_then(Node::handle),
                    );
                    return Ok(());
                }
                if self.node(staging.as_fd(), &temp, path)?.is_some() {
                    seam.unlink(staging.as_fd(), &temp).map_err(Self::failed(path))?;
                }
                let file = seam.create(staging.as_fd(), &temp, 0o600).map_err(Self::failed(path))?;
                self.shared
                    .copy_body(&Body::Object, digest, *bytes, file.as_fd(), path, &self.token)?;
                if live.is_some() {
                    // Best effort: the command may have changed owner or attributes, too.
                    let _ = self.shared.keep_attributes(path, file.as_fd(), path);
                }
                seam.chmod(file.as_fd(), *mode).map_err(Self::failed(path))?;
                if self.shared.power() {
                    seam.sync(file.as_fd()).map_err(Self::failed(path))?;
                }
            }
            Node::Other => return Ok(()),
        }
        let how = if live.is_some() {
            Rename::Exchange
        } else {
            Rename::NoReplace
        };
        seam.rename(staging.as_fd(), &temp, directory.as_fd(), &name, how)
            .map_err(Self::failed(path))?;
        if live.is_some() && !is_git_object(path) {
            let displaced = self.node(staging.as_fd(), &temp, path)?;
            if displaced != live {
                seam.rename(staging.as_fd(), &temp, directory.as_fd(), &name, Rename::Exchange)
                    .map_err(Self::failed(path))?;
                let theirs = self.shared.keep_live(path);
                self.conflict(
                    path,
                    format!("`{path}` changed while it was put back; it was left"),
                    before.handle(),
                    theirs,
                );
                return Ok(());
            }
            self.keep(staging.as_fd(), &temp, displaced.as_ref(), path)?;
        }
        self.note_captured(path, Some(before), live.as_ref());
        Ok(())
    }
}
