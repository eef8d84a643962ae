//! What the journal says: plain data in the contracts' compact form (their seals leave fields out), in the order of the life of a transaction.
//!
//! `Intents` (any number) → `Captured…` → `Commit` → `Settled`, or `Intents` → `Restored`. A transaction without
//! `Commit` is to be taken back; one with `Commit` and without `Settled` only has temporaries left to remove.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use zero_contracts::files::CommitSeal;
use zero_contracts::{CellId, Digest, Epoch, SessionName, WorkspacePath};

use crate::node::Node;

/// Version of the records; a segment of a newer one is not read.
pub(crate) const JOURNAL_VERSION: u32 = 1;

/// One primitive change of the tree. Each is atomic in the kernel, and what it displaces waits in the batch's staging
/// directory under the number `temp`, so that restoration puts back the very inode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Effect {
    /// `temp` is renamed to `path`, where nothing was.
    Create {
        path: WorkspacePath,
        temp: u32,
        after: Node,
    },
    /// `temp` and `path` change places.
    Replace {
        path: WorkspacePath,
        temp: u32,
        before: Node,
        after: Node,
    },
    /// `path` is renamed to `temp`.
    Remove {
        path: WorkspacePath,
        temp: u32,
        before: Node,
    },
    /// `from` is renamed to `to`, where nothing was.
    Rename {
        from: WorkspacePath,
        to: WorkspacePath,
        before: Node,
    },
    /// The permission bits change in place.
    Chmod {
        path: WorkspacePath,
        before: Node,
        after: Node,
    },
    /// A command did it; the bytes of `before` are an object. `temp` is for taking it back.
    Captured {
        path: WorkspacePath,
        temp: u32,
        before: Option<Node>,
        after: Option<Node>,
    },
}

impl Effect {
    /// The paths that it is about: two of a rename, otherwise one.
    pub fn paths(&self) -> impl Iterator<Item = &WorkspacePath> {
        let (first, second) = match self {
            Self::Rename { from, to, .. } => (from, Some(to)),
            Self::Create { path, .. }
            | Self::Replace { path, .. }
            | Self::Remove { path, .. }
            | Self::Chmod { path, .. }
            | Self::Captured { path, .. } => (path, None),
        };
        std::iter::once(first).chain(second)
    }
}

/// Effects that are published together, with their staging directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// Names the staging directory.
    pub tag: u64,
    /// In the order of publication.
    pub effects: Vec<Effect>,
}

impl Batch {
    /// Tells whether it says what a command did, be it nothing.
    pub fn is_of_command(&self) -> bool {
        self.effects.is_empty() || self.is_captured()
    }

    /// Tells whether a command did any of it.
    pub fn is_captured(&self) -> bool {
        self.effects
            .iter()
            .any(|effect| matches!(effect, Effect::Captured { .. }))
    }

    /// Tells whether it only makes and replaces files and symlinks, each at a path of its own. Then what the staging
    /// directory holds tells for each effect alone whether it was carried out, so that one that a loss of power took can be
    /// carried out again.
    pub fn is_plain(&self) -> bool {
        let mut seen = HashSet::new();
        self.effects.iter().all(|effect| match effect {
            Effect::Create { path, after, .. } => !after.is_directory() && seen.insert(path),
            Effect::Replace { path, .. } => seen.insert(path),
            _ => false,
        })
    }
}

/// Bytes of a small object kept in the journal itself: one flush less, and found again by digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inline {
    pub digest: Digest,
    #[serde(with = "bytes")]
    pub bytes: Vec<u8>,
}

mod bytes {
    //! Postcard writes a `Vec<u8>` element by element unless told that it is bytes.

    use serde::{Deserializer, Serializer, de::Visitor};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, v: &[u8]) -> Result<Vec<u8>, E> {
                Ok(v.to_vec())
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// One frame of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Record {
    /// First of every segment.
    Header { version: u32, epoch: Epoch },
    /// What is about to be published.
    Intents {
        cell: CellId,
        session: SessionName,
        epoch: Epoch,
        batch: Batch,
        objects: Vec<Inline>,
    },
    /// A command is about to run; `baseline` is the manifest object to compare with.
    CaptureBegun {
        cell: CellId,
        session: SessionName,
        epoch: Epoch,
        baseline: Digest,
    },
    /// The command is over; the batch says what it did.
    CaptureEnded { cell: CellId, batch: Batch },
    /// A batch that was refused is taken back; the transaction goes on.
    Withdrawn { cell: CellId, tag: u64 },
    /// The point of no return.
    Commit {
        cell: CellId,
        epoch: Epoch,
        seal: CommitSeal,
        objects: Vec<Inline>,
    },
    /// Nothing of a committed transaction is left to do.
    Settled { cell: CellId },
    /// An uncommitted transaction was taken back.
    Restored { cell: CellId },
}

impl Record {
    /// The small objects that the record carries.
    pub fn objects(&self) -> &[Inline] {
        match self {
            Self::Intents { objects, .. } | Self::Commit { objects, .. } => objects,
            _ => &[],
        }
    }

    pub fn epoch(&self) -> Option<Epoch> {
        match self {
            Self::Header { epoch, .. }
            | Self::Intents { epoch, .. }
            | Self::CaptureBegun { epoch, .. }
            | Self::Commit { epoch, .. } => Some(*epoch),
            _ => None,
        }
    }
}

#[cfg(test)]
mod vectors;
