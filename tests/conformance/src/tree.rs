//! A tree of files as plain data: what suites set up, and what they compare.

use std::collections::BTreeMap;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A file.
    File {
        /// Its content.
        bytes: Vec<u8>,
        /// Its permission bits.
        mode: u32,
    },
    /// A directory, with its permission bits.
    Directory(u32),
    /// A symlink, with its raw target.
    Symlink(Vec<u8>),
}

/// Every entry below a root, by its raw path.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tree(pub BTreeMap<Vec<u8>, Node>);

/// Permission bits of files and directories that nobody asked for others.
pub const FILE_MODE: u32 = 0o644;
/// The same for directories.
pub const DIRECTORY_MODE: u32 = 0o755;

impl Tree {
    /// Starts empty.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, and the directories above it.
    #[must_use]
    pub fn file(self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref().to_vec();
        self.with(path.as_bytes(), Node::File { bytes, mode: FILE_MODE })
    }

    /// Adds a directory, and those above it.
    #[must_use]
    pub fn directory(self, path: &str) -> Self {
        self.with(path.as_bytes(), Node::Directory(DIRECTORY_MODE))
    }

    /// Adds a symlink, and the directories above it.
    #[must_use]
    pub fn symlink(self, path: &str, target: &str) -> Self {
        self.with(path.as_bytes(), Node::Symlink(target.into()))
    }

    /// Adds an entry, and the directories above it.
    #[must_use]
    pub fn with(mut self, path: &[u8], node: Node) -> Self {
        for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            self.0
                .entry(path[..at].to_vec())
                .or_insert(Node::Directory(DIRECTORY_MODE));
        }
        self.0.insert(path.to_vec(), node);
        self
    }

    /// Sets the permission bits of an entry that is there.
    #[must_use]
    pub fn mode(mut self, path: &str, bits: u32) -> Self {
        if let Some(Node::File { mode, .. } | Node::Directory(mode)) = self.0.get_mut(path.as_bytes()) {
            *mode = bits;
        }
        self
    }

    /// Removes an entry with all below it.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        let below = format!("{path}/").into_bytes();
        self.0
            .retain(|key, _| key != path.as_bytes() && !key.starts_with(&below));
        self
    }

    /// Tells the first few differences between two trees.
    pub fn difference(&self, wanted: &Self) -> Option<String> {
        let keys: std::collections::BTreeSet<_> = self.0.keys().chain(wanted.0.keys()).collect();
        let told: Vec<String> = keys
            .into_iter()
            .filter(|key| self.0.get(*key) != wanted.0.get(*key))
            .take(4)
            .map(|key| {
                let path = String::from_utf8_lossy(key);
                format!("{path} is {:?}, not {:?}", self.0.get(key), wanted.0.get(key))
            })
            .collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}
