//! A file of the upper layer becomes the new file of a publication by a rename: its bytes are not written a second time,
//! and it keeps the time at which the command changed it. Whatever cannot be given so is copied.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use zero_contracts::read::EntryKind;
use zero_contracts::{CancelToken, WorkspacePath};

use super::{OWN_ATTRIBUTES, Private};
use crate::node::{Meta, Node};
use crate::seam::Rename;
use crate::tree::digest_of;

/// The attribute of a program that may do what its user may not.
const CAPABILITY: &[u8] = b"security.capability";

/// Directories that are held open, at most.
const OPEN: usize = 64;

/// Files that are given to one publication.
pub(crate) struct Giving<'a> {
    private: &'a Private,
    directories: HashMap<WorkspacePath, Arc<OwnedFd>>,
}

impl<'a> Giving<'a> {
    /// Begins; none while a command may still run.
    pub fn of(private: &'a Private) -> Option<Self> {
        (!private.is_open()).then(|| Self {
            private,
            directories: HashMap::new(),
        })
    }

    /// Moves the file of the upper layer at a path to a name in a directory, if it is what `after` says but for its mode.
    /// Returns it, opened for reading; none if nothing was moved.
    ///
    /// `as_made`: it must be as a new file would be, with the owner of this process and without attributes.
    pub fn give(
        &mut self,
        path: &WorkspacePath,
        after: &Node,
        as_made: bool,
        to: BorrowedFd<'_>,
        name: &[u8],
        token: &CancelToken,
    ) -> Option<OwnedFd> {
        let private = self.private;
        let parent = path.parent()?;
        let directory = match self.directories.get(&parent) {
            Some(directory) => Arc::clone(directory),
            None => Arc::new(private.upper.directory(&parent).ok()?),
        };
        let own_name = path.file_name()?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(&directory, own_name, flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&file).ok()?;
        let meta = Meta::new(&stat);
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        if meta.kind != EntryKind::File || stat.st_nlink != 1 || as_made && (meta.uid, meta.gid) != (user, group) {
            return None;
        }
        // A right of the program: it is not published, neither with a new file nor in place of another.
        let capability = rustix::fs::fgetxattr(&file, CAPABILITY, &mut [0_u8; 64][..]);
        if !matches!(capability, Err(Errno::NODATA | Errno::NOTSUP)) {
            return None;
        }
        if as_made && !private.strip_own(file.as_fd()) {
            return None;
        }
        let Node::File { digest, bytes, .. } = after else {
            return None;
        };
        if meta.size != *bytes {
            return None;
        }
        let is_known = private
            .known
            .get(path)
            .is_some_and(|(stamp, node)| *stamp == meta.stamp_value() && node.digest().as_ref() == Some(digest));
        if !is_known {
            let mut source = std::fs::File::from(file.try_clone().ok()?);
            if digest_of(&mut source, path, token).ok()? != (*digest, *bytes) {
                return None;
            }
        }
        let moved = private
            .shared
            .seam
            .rename(directory.as_fd(), own_name, to, name, Rename::NoReplace);
        moved.ok()?;
        self.directories.insert(parent, directory);
        Some(file)
    }

    /// Whether as many directories are held open as should be.
    pub fn is_full(&self) -> bool {
        self.directories.len() >= OPEN
    }

    /// Returns the directories that something was taken out of: a rename is durable once both of its directories are.
    pub fn take_directories(&mut self) -> impl Iterator<Item = Arc<OwnedFd>> {
        std::mem::take(&mut self.directories).into_values()
    }
}

impl Private {
    /// Takes away what the overlay noted at a file; tells whether no other attribute is left but labels that the system gives
    /// every file.
    fn strip_own(&self, file: BorrowedFd<'_>) -> bool {
        let mut list = [0_u8; 1024];
        let length = match rustix::fs::flistxattr(file, &mut list[..]) {
            Ok(length) => length,
            Err(Errno::NOTSUP) => 0,
            Err(_) => return false,
        };
        list[..length]
            .split(|&b| b == 0)
            .filter(|name| !name.is_empty())
            .all(|name| {
                name.starts_with(b"security.")
                    || name.starts_with(OWN_ATTRIBUTES) && self.shared.seam.remove_xattr(file, name).is_ok()
            })
    }
}
