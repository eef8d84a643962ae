//! Flushes that do not depend on one another, waited for together.
//!
//! A flush mostly waits for the disk, and a journalling file system makes one write of the flushes that it is asked for
//! at the same time: three at once take about as long as one, three after one another three times that.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::seam::{Flush, Seam};

/// Descriptors that are held open to be flushed at once, at most.
const OPEN: usize = 64;

/// Files and directories that become durable together, in no order.
#[derive(Default)]
pub(crate) struct Round {
    files: Vec<OwnedFd>,
    directories: Vec<Arc<OwnedFd>>,
}

impl Round {
    /// Adds a file: its bytes and its mode.
    pub fn file(&mut self, file: OwnedFd) {
        self.files.push(file);
    }

    /// Adds a directory: its entries and its mode.
    pub fn directory(&mut self, directory: impl Into<Arc<OwnedFd>>) {
        self.directories.push(directory.into());
    }

    /// Tells whether as many descriptors are held as should be.
    pub fn is_full(&self) -> bool {
        self.files.len() + self.directories.len() >= OPEN
    }

    /// Makes everything that was added durable, and forgets it.
    ///
    /// # Errors
    /// The first error met; then nothing of the round may be taken for durable.
    pub fn flush(&mut self, seam: &Seam) -> std::io::Result<()> {
        let (files, directories) = (std::mem::take(&mut self.files), std::mem::take(&mut self.directories));
        let files = files.iter().map(|file| Flush::File(file.as_fd()));
        let directories = directories.iter().map(|directory| Flush::Directory(directory.as_fd()));
        seam.sync_together(&files.chain(directories).collect::<Vec<_>>())
    }
}
