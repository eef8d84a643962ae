//! Carrying out one effect: an atomic rename or exchange, and a look at what it displaced.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use zero_contracts::response::PathConflict;
use zero_contracts::{Error, ErrorKind, Handle, WorkspacePath};

use super::{Directories, Publication, Refusal, temp_name};
use crate::node::{Meta, Node};
use crate::record::Effect;
use crate::seam::Rename;
use crate::tree::{io, os};

impl Publication<'_> {
    pub(super) fn carry_out(
        &self,
        effect: &Effect,
        staging: &Arc<OwnedFd>,
        directories: &mut Directories<'_>,
    ) -> Result<(), Box<Refusal>> {
        let seam = &self.shared.seam;
        match effect {
            Effect::Create { path, temp, after } => {
                let (directory, name) = directories.of(path, true)?;
                match seam.rename(
                    staging.as_fd(),
                    &temp_name(*temp),
                    directory.as_fd(),
                    &name,
                    Rename::NoReplace,
                ) {
                    Err(e) if e.raw_os_error() == Some(Errno::EXIST.raw_os_error()) => {
                        return Err(self.refuse(
                            path,
                            "something is there that was not when this was staged",
                            Some(after),
                        ));
                    }
                    other => other.map_err(|e| rename_failed(&e, path))?,
                }
            }
            Effect::Replace { path, temp, before, .. } => {
                let (directory, name) = directories.of(path, true)?;
                let exchange = || {
                    seam.rename(
                        staging.as_fd(),
                        &temp_name(*temp),
                        directory.as_fd(),
                        &name,
                        Rename::Exchange,
                    )
                };
                match exchange() {
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                        return Err(self.refuse(path, "it was removed since this was staged", None));
                    }
                    other => other.map_err(|e| rename_failed(&e, path))?,
                }
                if let Err(found) = self.check_displaced(staging.as_fd(), &temp_name(*temp), before, path) {
                    exchange().map_err(|e| rename_failed(&e, path))?;
                    return Err(found);
                }
            }
            Effect::Remove { path, temp, before } => {
                let (directory, name) = directories.of(path, true)?;
                match seam.rename(
                    directory.as_fd(),
                    &name,
                    staging.as_fd(),
                    &temp_name(*temp),
                    Rename::NoReplace,
                ) {
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                        return Err(self.refuse(path, "it was removed since this was staged", None));
                    }
                    other => other.map_err(|e| rename_failed(&e, path))?,
                }
                if before.is_directory() {
                    directories.forget();
                }
                if let Err(found) = self.check_displaced(staging.as_fd(), &temp_name(*temp), before, path) {
                    seam.rename(
                        staging.as_fd(),
                        &temp_name(*temp),
                        directory.as_fd(),
                        &name,
                        Rename::NoReplace,
                    )
                    .map_err(|e| rename_failed(&e, path))?;
                    return Err(found);
                }
            }
            Effect::Rename { from, to, before } => {
                let (source, old) = directories.of(from, true)?;
                let (target, new) = directories.of(to, true)?;
                match seam.rename(source.as_fd(), &old, target.as_fd(), &new, Rename::NoReplace) {
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                        return Err(self.refuse(from, "it was removed since this was staged", None));
                    }
                    Err(e) if e.raw_os_error() == Some(Errno::EXIST.raw_os_error()) => {
                        return Err(self.refuse(to, "something is there that was not when this was staged", None));
                    }
                    other => other.map_err(|e| rename_failed(&e, from))?,
                }
                directories.forget();
                if !before.is_directory()
                    && let Err(found) = self.check_displaced(target.as_fd(), &new, before, from)
                {
                    seam.rename(target.as_fd(), &new, source.as_fd(), &old, Rename::NoReplace)
                        .map_err(|e| rename_failed(&e, from))?;
                    return Err(found);
                }
            }
            Effect::Chmod { path, before, after } => {
                let handle = self.shared.tree.handle(path).map_err(|e| os(e, "opening", path))?;
                let meta = Meta::new(&rustix::fs::fstat(&handle).map_err(|e| os(e, "looking at", path))?);
                if (meta.kind, meta.mode) != (before.kind(), before.mode()) {
                    return Err(self.refuse(path, "its mode changed since this was staged", None));
                }
                seam.chmod(handle.as_fd(), after.mode())
                    .map_err(|e| io(&e, "setting the mode of", path))?;
                self.shared.flush_mode(path)?;
            }
            Effect::Captured { .. } => {}
        }
        Ok(())
    }

    /// Checks that what was displaced is what was expected; a large file's bytes become an object on the way.
    fn check_displaced(
        &self,
        directory: std::os::fd::BorrowedFd<'_>,
        name: &[u8],
        before: &Node,
        path: &WorkspacePath,
    ) -> Result<(), Box<Refusal>> {
        let found = self.shared.node_at(directory, name, path, true, self.token)?;
        if found.as_ref() == Some(before) {
            if before.is_directory() {
                let inside = self.shared.is_empty_directory(directory, name, path)?;
                if !inside {
                    return Err(self.refuse(path, "something was put into it since this was staged", None));
                }
            }
            return Ok(());
        }
        let ours = before.handle();
        let theirs = match &found {
            Some(Node::File { .. }) => self.shared.keep_file(directory, name, path).ok().map(Handle::blob),
            _ => None,
        };
        let detail = format!(
            "`{path}` is {} and was {} when this was staged",
            Node::describe(found.as_ref()),
            Node::describe(Some(before))
        );
        Err(Box::new(Refusal {
            error: Error::new(ErrorKind::Conflict, format!("{detail}; nothing was changed"))
                .with_path(path)
                .retryable(true),
            conflict: Some(PathConflict {
                path: path.to_string(),
                detail,
                ours,
                theirs,
            }),
        }))
    }

    fn refuse(&self, path: &WorkspacePath, why: &str, ours: Option<&Node>) -> Box<Refusal> {
        let theirs = self.shared.keep_live(path);
        Box::new(Refusal {
            error: Error::new(ErrorKind::Conflict, format!("`{path}`: {why}; nothing was changed"))
                .with_path(path)
                .retryable(true),
            conflict: Some(PathConflict {
                path: path.to_string(),
                detail: why.to_owned(),
                ours: ours.and_then(Node::handle),
                theirs,
            }),
        })
    }
}

fn rename_failed(e: &std::io::Error, path: &WorkspacePath) -> Error {
    match e.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::XDEV) => Error::new(
            ErrorKind::Unsupported,
            format!(
                "`{path}` lies on another file system than the workspace root, where changes cannot be made atomically"
            ),
        )
        .with_path(path),
        Some(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Error::new(
            ErrorKind::Unsupported,
            format!(
                "the file system of `{path}` does not do what atomic publication needs (renameat2 with exchange): {e}"
            ),
        )
        .with_path(path),
        _ => io(e, "publishing", path),
    }
}
