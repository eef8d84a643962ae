//! The inverse of each effect, carried out only where the tree is what the effect left.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use zero_contracts::{Error, WorkspacePath};

use super::Restorer;
use super::ties::Tie;
use crate::node::Node;
use crate::publish::temp_name;
use crate::record::Effect;
use crate::seam::Rename;
use crate::tree::os;

impl Restorer<'_> {
    pub(super) fn effect(&mut self, effect: &Effect, tie: &Tie, staging: &Arc<OwnedFd>) -> Result<(), Error> {
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
