//! Laying what is staged into the upper layer. Only what differs from what was laid or collected last is touched.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags, openat};
use zero_contracts::read::EntryKind;
use zero_contracts::{CancelToken, Error, WorkspacePath};

use super::deep::{check_depth, clear};
use super::{OPAQUE, Private, open_at};
use crate::engine::Shared;
use crate::node::Meta;
use crate::overlay::{Body, Overlay, Slot, rebase};
use crate::tree::{io, link_at, os, stat_at};

/// Gives a new entry its owner, where that is another one and the user may.
pub(super) fn give_owner(shared: &Shared, entry: BorrowedFd<'_>, uid: u32, gid: u32) {
    if let Ok(own) = rustix::fs::fstat(entry)
        && (own.st_uid, own.st_gid) != (uid, gid)
    {
        let _ = shared.seam.chown(entry, uid, gid);
    }
}

/// Tells whether two slots mean the same, but for the mode of a directory.
fn same(a: &Slot, b: &Slot) -> bool {
    match (a, b) {
        (Slot::Directory { origin: a, .. }, Slot::Directory { origin: b, .. }) => a == b,
        _ => a.node() == b.node(),
    }
}

impl Private {
    /// Makes the upper layer equal to what is staged.
    pub(super) fn lay(&mut self, staged: &Overlay, token: &CancelToken) -> Result<(), Error> {
        let laid = std::mem::take(&mut self.laid);
        for (path, _) in laid.slots() {
            if staged.get(path).is_none() {
                self.remove(path)?;
            }
        }
        for (path, slot) in staged.slots() {
            token.check()?;
            match (laid.get(path), slot) {
                (Some(before), slot) if same(before, slot) => {
                    if let (Slot::Directory { mode: was, .. }, Slot::Directory { mode, .. }) = (before, slot)
                        && was != mode
                    {
                        self.set_directory_mode(path, *mode)?;
                    }
                }
                (_, Slot::Carried { .. }) => {}
                (_, slot) => self.lay_slot(path, slot, staged, token)?,
            }
        }
        self.laid = staged.clone();
        Ok(())
    }

    fn remove(&mut self, path: &WorkspacePath) -> Result<(), Error> {
        self.known.remove(path);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(());
        };
        match self.upper.directory(&parent) {
            Ok(parent) => clear(&self.shared, parent.as_fd(), name).map_err(|e| io(&e, "preparing", path)),
            Err(_) => Ok(()),
        }
    }

    fn set_directory_mode(&self, path: &WorkspacePath, mode: u32) -> Result<(), Error> {
        let handle = self.upper.handle(path).map_err(|e| os(e, "opening", path))?;
        let set = self.shared.seam.chmod(handle.as_fd(), mode);
        set.map_err(|e| io(&e, "setting the mode of", path))
    }

    /// The directory of the upper layer in which a path lies; those that only the live tree has are made.
    fn parent(&self, path: &WorkspacePath) -> Result<OwnedFd, Error> {
        let Some(parent) = path.parent() else {
            return Err(Error::invalid("the workspace root cannot be replaced").with_path(path));
        };
        if let Ok(directory) = self.upper.directory(&parent) {
            return Ok(directory);
        }
        let above = self.parent(&parent)?;
        let name = parent.file_name().unwrap_or_default();
        let fail = |e: std::io::Error| io(&e, "preparing", &parent);
        let live = self
            .shared
            .tree
            .stat(&parent)
            .map_err(|e| os(e, "looking at", &parent))?;
        self.shared
            .seam
            .make_directory(above.as_fd(), name, 0o700)
            .map_err(fail)?;
        let made = open_at(above.as_fd(), name).map_err(|e| fail(e.into()))?;
        if let Some(live) = live {
            give_owner(&self.shared, made.as_fd(), live.uid, live.gid);
            self.shared.seam.chmod(made.as_fd(), live.mode).map_err(fail)?;
        }
        Ok(made)
    }

    fn lay_slot(
        &mut self,
        path: &WorkspacePath,
        slot: &Slot,
        staged: &Overlay,
        token: &CancelToken,
    ) -> Result<(), Error> {
        self.remove(path)?;
        let name = path.file_name().unwrap_or_default();
        let fail = |e: std::io::Error| io(&e, "preparing", path);
        let shared = &self.shared;
        let live = match self.hidden(path) {
            true => None,
            false => shared.tree.stat(path).ok().flatten(),
        };
        if matches!(slot, Slot::Absent) {
            if live.is_some() {
                let parent = self.parent(path)?;
                shared.seam.whiteout(parent.as_fd(), name).map_err(fail)?;
            }
            return Ok(());
        }
        let parent = self.parent(path)?;
        match slot {
            Slot::Absent | Slot::Carried { .. } => {}
            Slot::Symlink { target } => shared.seam.symlink(target, parent.as_fd(), name).map_err(fail)?,
            Slot::File {
                mode,
                digest,
                bytes,
                body,
            } => {
                let file = shared.seam.create(parent.as_fd(), name, 0o600).map_err(fail)?;
                shared.copy_body(body, digest, *bytes, file.as_fd(), path, token)?;
                let owner = match body {
                    Body::Live(origin) => shared.tree.stat(origin).ok().flatten(),
                    _ => live,
                };
                if let Some(owner) = owner {
                    give_owner(shared, file.as_fd(), owner.uid, owner.gid);
                }
                shared.seam.chmod(file.as_fd(), *mode).map_err(fail)?;
            }
            Slot::Directory { mode, origin } => {
                shared.seam.make_directory(parent.as_fd(), name, 0o700).map_err(fail)?;
                let made = open_at(parent.as_fd(), name).map_err(|e| fail(e.into()))?;
                let in_place = origin.as_ref() == Some(path);
                if !in_place && live.is_some() {
                    shared.seam.set_xattr(made.as_fd(), OPAQUE, b"y").map_err(fail)?;
                }
                if let Some(origin) = origin {
                    if let Ok(Some(meta)) = shared.tree.stat(origin) {
                        give_owner(shared, made.as_fd(), meta.uid, meta.gid);
                    }
                    if !in_place {
                        self.copy_below(origin, path, &made, staged, token)?;
                    }
                }
                shared.seam.chmod(made.as_fd(), *mode).map_err(fail)?;
            }
        }
        Ok(())
    }

    /// Copies what a moved directory brought along; what is staged below it comes by itself.
    fn copy_below(
        &self,
        origin: &WorkspacePath,
        path: &WorkspacePath,
        into: &OwnedFd,
        staged: &Overlay,
        token: &CancelToken,
    ) -> Result<(), Error> {
        let fail = |e| os(e, "listing", origin);
        let live = self.shared.tree.directory(origin).map_err(fail)?;
        for entry in Dir::read_from(&live).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let (from, to) = (origin.join(name)?, path.join(name)?);
            if staged.get(&to).is_some() {
                continue;
            }
            let skip = |inside: &WorkspacePath| staged.get(&rebase(inside, &from, &to)).is_some();
            copy(&self.shared, live.as_fd(), into.as_fd(), name, &from, &skip, token)?;
        }
        Ok(())
    }
}

/// Copies an entry, with all it holds but what `skip` names, to the same name in another directory.
pub(super) fn copy(
    shared: &Shared,
    from: BorrowedFd<'_>,
    into: BorrowedFd<'_>,
    name: &[u8],
    path: &WorkspacePath,
    skip: &dyn Fn(&WorkspacePath) -> bool,
    token: &CancelToken,
) -> Result<(), Error> {
    token.check()?;
    let fail = |e: std::io::Error| io(&e, "copying", path);
    check_depth(path).map_err(fail)?;
    let Some(meta) = stat_at(from, name).map_err(|e| fail(e.into()))? else {
        return Ok(());
    };
    match meta.kind {
        EntryKind::Other => {}
        EntryKind::Symlink => {
            let target = link_at(from, name).map_err(|e| fail(e.into()))?;
            shared.seam.symlink(&target, into, name).map_err(fail)?;
        }
        EntryKind::File => {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let source = openat(from, name, flags, Mode::empty()).map_err(|e| fail(e.into()))?;
            let file = shared.seam.create(into, name, 0o600).map_err(fail)?;
            write_all(shared, source, file.as_fd(), path)?;
            finish(shared, file.as_fd(), &meta).map_err(fail)?;
        }
        EntryKind::Directory => {
            shared.seam.make_directory(into, name, 0o700).map_err(fail)?;
            let made = open_at(into, name).map_err(|e| fail(e.into()))?;
            let source = open_at(from, name).map_err(|e| fail(e.into()))?;
            for inside in super::names(source.as_fd()).map_err(|e| fail(e.into()))? {
                let child = path.join(&inside)?;
                if !skip(&child) {
                    copy(shared, source.as_fd(), made.as_fd(), &inside, &child, skip, token)?;
                }
            }
            finish(shared, made.as_fd(), &meta).map_err(fail)?;
        }
    }
    Ok(())
}

fn finish(shared: &Shared, entry: BorrowedFd<'_>, meta: &Meta) -> std::io::Result<()> {
    give_owner(shared, entry, meta.uid, meta.gid);
    shared.seam.chmod(entry, meta.mode)
}

fn write_all(shared: &Shared, source: OwnedFd, into: BorrowedFd<'_>, path: &WorkspacePath) -> Result<(), Error> {
    let mut source = std::fs::File::from(source);
    let mut piece = vec![0; 256 << 10];
    loop {
        match std::io::Read::read(&mut source, &mut piece).map_err(|e| io(&e, "reading", path))? {
            0 => return Ok(()),
            count => shared
                .seam
                .write(into, &piece[..count])
                .map_err(|e| io(&e, "writing", path))?,
        }
    }
}
