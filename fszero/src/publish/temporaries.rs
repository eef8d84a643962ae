//! The staging directory of a batch, and in it every new file, directory and symlink, complete before the first effect.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use zero_contracts::{Error, ErrorKind, WorkspacePath};

use super::{Publication, Step, idle_name, idle_path, staging_name, temp_name};
use crate::node::Node;
use crate::private::Giving;
use crate::record::Effect;
use crate::restore;
use crate::round::Round;
use crate::tree::{io, os, stat_at};

/// Temporaries that are being made.
struct Making<'a> {
    staging: BorrowedFd<'a>,
    /// What is to be made durable of them.
    round: &'a mut Round,
    giving: Option<Giving<'a>>,
}

impl Making<'_> {
    fn is_full(&self) -> bool {
        self.round.is_full() || self.giving.as_ref().is_some_and(Giving::is_full)
    }
}

impl Publication<'_> {
    pub(super) fn make_staging(&self, tag: u64) -> Result<Arc<OwnedFd>, Error> {
        let path = idle_path(tag);
        let root = self.shared.tree.root();
        let fail = |e: Errno| os(e, "looking at", &path);
        if stat_at(root, &idle_name(tag)).map_err(fail)?.is_some()
            || stat_at(root, &staging_name(tag)).map_err(fail)?.is_some()
        {
            // The frame's number was given before, to one that was cut off: nothing came of it.
            restore::purge_staging(self.shared, tag)?;
        }
        self.shared
            .seam
            .make_directory(root, &idle_name(tag), 0o700)
            .map_err(|e| io(&e, "making", &path))?;
        let staging = self.shared.tree.directory(&path).map_err(|e| os(e, "opening", &path))?;
        Ok(Arc::new(staging))
    }

    pub(super) fn make_temporaries(
        &self,
        steps: &[Step],
        staging: &Arc<OwnedFd>,
        round: &mut Round,
    ) -> Result<(), Error> {
        let mut making = Making {
            staging: staging.as_fd(),
            round,
            giving: self.private.and_then(Giving::of),
        };
        for step in steps {
            let (path, temp, after) = match &step.effect {
                Effect::Create { path, temp, after } | Effect::Replace { path, temp, after, .. } => {
                    (path, *temp, after)
                }
                _ => continue,
            };
            self.token.check()?;
            self.make_temporary(path, temp, after, step, &mut making)?;
            if making.is_full() {
                self.settle(&mut making);
                let flushed = making.round.flush(&self.shared.seam);
                flushed.map_err(|e| io(&e, "flushing", path))?;
            }
        }
        self.settle(&mut making);
        Ok(())
    }

    /// Leaves it to the round to flush what files were taken out of.
    fn settle(&self, making: &mut Making<'_>) {
        if let Some(giving) = &mut making.giving {
            let directories = giving.take_directories();
            if self.shared.power() {
                directories.for_each(|directory| making.round.directory(directory));
            }
        }
    }

    /// Makes one temporary complete: content, then owner and attributes, then mode. It is private until then, in a
    /// directory that is private. What makes it durable is added to a round.
    fn make_temporary(
        &self,
        path: &WorkspacePath,
        temp: u32,
        after: &Node,
        step: &Step,
        making: &mut Making<'_>,
    ) -> Result<(), Error> {
        let name = temp_name(temp);
        let staging = making.staging;
        let (seam, power) = (&self.shared.seam, self.shared.power());
        let fail = |e: std::io::Error| io(&e, "preparing", path);
        match after {
            Node::Directory { mode } => {
                seam.make_directory(staging, &name, *mode & 0o777).map_err(fail)?;
                let flags = rustix::fs::OFlags::RDONLY
                    | rustix::fs::OFlags::DIRECTORY
                    | rustix::fs::OFlags::NOFOLLOW
                    | rustix::fs::OFlags::CLOEXEC;
                let made = rustix::fs::openat(staging, &name[..], flags, rustix::fs::Mode::empty())
                    .map_err(|e| fail(e.into()))?;
                self.inherit_group(path, made.as_fd())?;
                let own = rustix::fs::fstat(&made).map_err(|e| fail(e.into()))?;
                if own.st_mode & 0o7777 != *mode {
                    seam.chmod(made.as_fd(), *mode).map_err(fail)?;
                    if power {
                        making.round.directory(made);
                    }
                }
            }
            Node::Symlink { target } => seam.symlink(target, staging, &name).map_err(fail)?,
            Node::File { mode, digest, bytes } => {
                let body = step
                    .body
                    .as_ref()
                    .ok_or_else(|| Error::new(ErrorKind::Internal, "a file without content was planned"))?;
                let as_made = step.keep.is_none();
                let given = match &mut making.giving {
                    Some(giving) => giving.give(path, after, as_made, staging, &name, self.token),
                    None => None,
                };
                let file = match given {
                    Some(file) => file,
                    None => {
                        let file = seam.create(staging, &name, 0o600).map_err(fail)?;
                        self.shared
                            .copy_body(body, digest, *bytes, file.as_fd(), path, self.token)?;
                        file
                    }
                };
                match &step.keep {
                    Some(origin) => self.shared.keep_attributes(origin, file.as_fd(), path)?,
                    None => self.inherit_group(path, file.as_fd())?,
                }
                seam.chmod(file.as_fd(), *mode).map_err(fail)?;
                if power {
                    making.round.file(file);
                }
            }
            Node::Other => return Err(Error::new(ErrorKind::Internal, "a device was planned")),
        }
        Ok(())
    }

    /// In a set-group-id directory a new entry gets the directory's group.
    fn inherit_group(&self, path: &WorkspacePath, file: BorrowedFd<'_>) -> Result<(), Error> {
        let parent = path.parent().unwrap_or_default();
        if let Ok(Some(meta)) = self.shared.tree.stat(&parent)
            && meta.mode & 0o2000 != 0
        {
            let own = rustix::fs::fstat(file).map_err(|e| os(e, "looking at", path))?;
            if own.st_gid != meta.gid {
                self.shared
                    .seam
                    .chown(file, own.st_uid, meta.gid)
                    .map_err(|e| io(&e, "preparing", path))?;
            }
        }
        Ok(())
    }
}
