//! The directories that a publication or a restoration works in, and which of them have entries to make durable.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use zero_contracts::{Error, WorkspacePath};

use crate::engine::Shared;
use crate::round::Round;
use crate::tree::{io, os};

/// With more directories than this to flush, the whole file system is.
const SYNC_DIRECTORIES: usize = 128;

/// Directories by path, opened beneath the root, and those whose entries changed.
pub(crate) struct Directories<'a> {
    shared: &'a Shared,
    open: HashMap<WorkspacePath, Arc<OwnedFd>>,
    dirty: HashMap<(u64, u64), Arc<OwnedFd>>,
    everything: bool,
}

impl<'a> Directories<'a> {
    pub fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            open: HashMap::new(),
            dirty: HashMap::new(),
            everything: false,
        }
    }

    /// The directory that holds a path, and the name in it; it counts as changed if `dirty`.
    pub fn of(&mut self, path: &WorkspacePath, dirty: bool) -> Result<(Arc<OwnedFd>, Vec<u8>), Error> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Error::invalid("the workspace root cannot be replaced").with_path(path));
        };
        let directory = match self.open.get(&parent) {
            Some(directory) => Arc::clone(directory),
            None => {
                let opened = self
                    .shared
                    .tree
                    .directory(&parent)
                    .map_err(|e| os(e, "opening the directory of", path))?;
                if self.open.len() >= SYNC_DIRECTORIES {
                    self.open.clear();
                }
                let directory = Arc::new(opened);
                self.open.insert(parent, Arc::clone(&directory));
                directory
            }
        };
        if dirty {
            self.mark(&directory)?;
        }
        Ok((directory, name.to_vec()))
    }

    /// A directory's entries changed.
    pub fn mark(&mut self, directory: &Arc<OwnedFd>) -> Result<(), Error> {
        if !self.shared.power() || self.everything {
            return Ok(());
        }
        let stat = rustix::fs::fstat(directory.as_fd()).map_err(|e| os(e, "looking at", &WorkspacePath::root()))?;
        self.dirty.insert((stat.st_dev, stat.st_ino), Arc::clone(directory));
        if self.dirty.len() > SYNC_DIRECTORIES {
            self.everything = true;
            self.dirty.clear();
        }
        Ok(())
    }

    /// Paths lead elsewhere now.
    pub fn forget(&mut self) {
        self.open.clear();
    }

    /// Makes all changed entries durable.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.sync_with(&mut Round::default())
    }

    /// Makes all changed entries durable, and what a round holds.
    pub fn sync_with(&mut self, round: &mut Round) -> Result<(), Error> {
        let fail = |e: std::io::Error| io(&e, "flushing", &WorkspacePath::root());
        self.hand_over(round)?;
        round.flush(&self.shared.seam).map_err(fail)
    }

    /// Leaves it to a round to make all changed entries durable. Too many for that are made durable now.
    pub(super) fn hand_over(&mut self, round: &mut Round) -> Result<(), Error> {
        if std::mem::take(&mut self.everything) {
            let flushed = self.shared.seam.sync_all(self.shared.tree.root());
            flushed.map_err(|e| io(&e, "flushing", &WorkspacePath::root()))?;
        }
        self.dirty.drain().for_each(|(_, directory)| round.directory(directory));
        Ok(())
    }
}
