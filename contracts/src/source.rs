//! The border to a tree of files as somebody sees it: the live tree, a snapshot, or a cell's staged overlay.

use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::find::{Freshness, Skipped};
use crate::read::EntryKind;
use crate::{CancelToken, Digest, Error, WorkspacePath};

/// One entry of a tree, as `lstat` would tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it lies.
    pub path: WorkspacePath,
    /// What it is; a symlink is never followed.
    pub kind: EntryKind,
    /// Size of a file in bytes; 0 otherwise.
    pub bytes: u64,
    /// Permission bits; 0 for a symlink.
    pub mode: u32,
    /// Cheap identity of the content.
    pub stamp: Stamp,
}

/// Cheap identity of a file's content within one view: equal settled stamps of one path mean equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Opaque: derived from device, inode, size, mtime and ctime, or from the content's digest.
    pub value: u128,
    /// False while the file was changed so recently that a further change might not show (git's racy-timestamp rule):
    /// then content must be read again to be known.
    pub settled: bool,
}

/// The complete bytes of one file at one instant.
#[derive(Clone, Debug)]
pub struct FileContent {
    /// The file itself: for a symlink that was followed, its target.
    pub entry: Entry,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// Their digest.
    pub digest: Digest,
}

/// Where a walk goes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WalkScope {
    /// The file or directory to start at; the root by default.
    pub start: WorkspacePath,
    /// Enter what ignore rules (`.gitignore`, `.ignore`, git's excludes) exclude, too. `.git` itself is never entered.
    pub ignored: bool,
    /// How many levels below the start are entered; 1: its direct entries. Without it: all.
    pub depth: Option<usize>,
    /// Yield directories, too; otherwise only files, symlinks and others.
    pub directories: bool,
}

/// A tree of files.
///
/// Resolution never leaves the root: a `..` or symlink that would is `outside_workspace`. FIFOs, sockets and devices are
/// listed and never opened. All methods may be called from several threads.
pub trait SourceView: Send + Sync {
    /// Returns the entry itself, without following a final symlink; none if there is nothing.
    ///
    /// # Errors
    /// `outside_workspace`, `denied`, `io`.
    fn entry(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error>;

    /// Returns the entry that a path leads to, following symlinks inside the root; its `path` is the real one. None if
    /// there is nothing, also behind a dangling symlink.
    ///
    /// # Errors
    /// As for [`entry`](Self::entry).
    fn resolve(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error>;

    /// Returns a directory's entries in order of their names' bytes, following a symlink to it; their paths lie below the
    /// path as it was given. `.git` is listed.
    ///
    /// # Errors
    /// `not_found`; `invalid_input` if it is not a directory; as for [`entry`](Self::entry).
    fn list(&self, path: &WorkspacePath) -> Result<Vec<Entry>, Error>;

    /// Returns the raw target of a symlink.
    ///
    /// # Errors
    /// `not_found`; `invalid_input` if it is not a symlink.
    fn read_link(&self, path: &WorkspacePath) -> Result<Vec<u8>, Error>;

    /// Reads a whole file, following symlinks inside the root. The bytes are those of one instant: a file that changes
    /// while it is read is read again, or is a retryable `conflict`.
    ///
    /// # Errors
    /// `not_found`, `outside_workspace`, `denied`, `conflict`, `io`; `invalid_input` for what is no regular file;
    /// `cancelled` and `deadline` from the token.
    fn read(&self, path: &WorkspacePath, token: &CancelToken) -> Result<FileContent, Error>;

    /// Opens a file for reading in pieces, for files that need not fit in memory. A change meanwhile may go unseen:
    /// the caller compares [`entry`](Self::entry) before and after.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    fn open(&self, path: &WorkspacePath) -> Result<Box<dyn Read + Send>, Error>;

    /// Visits every entry of the scope, from several threads and in no particular order. Symlinks are not followed.
    /// The visitor stops the walk with `Break`. Returns what could not be visited.
    ///
    /// # Errors
    /// `not_found` if the start does not exist; `cancelled` and `deadline` from the token.
    fn walk(
        &self,
        scope: &WalkScope,
        token: &CancelToken,
        visit: &(dyn Fn(Entry) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Skipped>, Error>;

    /// Tells whether another cell's unfinished publication may be seen.
    fn freshness(&self) -> Freshness;
}
