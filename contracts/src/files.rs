//! The border to the engine that owns bytes: reading, snapshots, transactions, recovery.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::apply::FileOperation;
use crate::edit::{EditReceipt, PathState};
use crate::response::{CaptureTier, PathConflict};
use crate::{CancelToken, CellId, Digest, Epoch, Error, Handle, ObjectStore, SessionName, SourceView, WorkspacePath};

/// What a cell last read of each file: the guard of an edit that names none.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReadLog(BTreeMap<WorkspacePath, Digest>);

impl ReadLog {
    /// Starts empty.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that `path` was read with this digest.
    pub fn note(&mut self, path: WorkspacePath, digest: Digest) {
        self.0.insert(path, digest);
    }

    /// Returns what was last read.
    pub fn get(&self, path: &WorkspacePath) -> Option<&Digest> {
        self.0.get(path)
    }
}

/// What survives a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Loss of power: fsync before effects and at the commit.
    #[default]
    Power,
    /// Death of any process: no fsync.
    Process,
}

/// How a transaction begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeginTransaction {
    /// The cell it belongs to.
    pub cell: CellId,
    /// The cell's session: whoever recovers records the dead cell's event there.
    pub session: SessionName,
    /// Bytes that may be staged.
    pub staged_bytes: u64,
}

/// What a commit makes durable together with the files: digests of objects that are stored already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct CommitSeal {
    /// The session.
    pub session: SessionName,
    /// The session's new state root; absent for an empty state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Digest>,
    /// The cell's terminal event.
    pub event: Digest,
    /// Intents of effects on the outside world.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intents: Vec<Digest>,
}

/// One committed transaction of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct CommitRecord {
    /// Its place in the journal; grows by at least 1.
    pub sequence: u64,
    /// The cell.
    pub cell: CellId,
    /// The lease's epoch.
    pub epoch: Epoch,
    /// What it made durable.
    pub seal: CommitSeal,
}

/// How effects were taken back.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", default)]
pub struct Restoration {
    /// Paths put back.
    pub restored: Vec<WorkspacePath>,
    /// Paths that somebody else changed meanwhile: kept as they are, with handles of both versions.
    pub conflicts: Vec<PathConflict>,
}

/// A commit that did not happen: everything was taken back.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct CommitFailure {
    /// Why.
    pub error: Error,
    /// How the effects were taken back.
    pub restoration: Restoration,
}

/// Effects of one command, as its capture found them.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", default)]
pub struct Captured {
    /// One a path that changed.
    pub receipts: Vec<EditReceipt>,
    /// Changes under ignored paths: passed through, outside "no trace".
    pub ignored_paths: u64,
}

/// The private view of the workspace that commands of one transaction get: what they write lands in `upper`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandView {
    /// The workspace: the lower layer, and where the view is seen.
    pub root: PathBuf,
    /// The upper layer, in the form of the kernel's overlay (attributes `user.overlay.*`, whiteouts).
    pub upper: PathBuf,
    /// An empty directory of the kernel's own, on the file system of `upper`.
    pub work: PathBuf,
    /// Directories that stay the live ones: those that ignore rules exclude and that are there.
    pub through: Vec<WorkspacePath>,
}

/// What happened to a dead cell's transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The dead cell.
    pub cell: CellId,
    /// Its session.
    pub session: SessionName,
    /// Committed (rolled forward), or taken back.
    pub outcome: RecoveredOutcome,
}

/// A transaction whose cell has not ended it, or died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTransaction {
    /// The cell.
    pub cell: CellId,
    /// Its session.
    pub session: SessionName,
    /// Whether its commit record is there: only traces are left to remove.
    pub committed: bool,
    /// Whether a command of it runs on the live tree.
    pub capturing: bool,
}

/// Which way a recovery went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveredOutcome {
    /// Its commit record was there.
    Committed(CommitRecord),
    /// It was not: everything was taken back.
    Restored(Restoration),
}

/// One path that differs between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct PathChange {
    /// The path.
    pub path: WorkspacePath,
    /// What it was; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<PathState>,
    /// What it is; absent where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<PathState>,
}

/// A staged reversal of a committed transaction.
pub struct Reversal {
    /// The new transaction.
    pub transaction: Box<dyn Transaction>,
    /// What it stages.
    pub receipts: Vec<EditReceipt>,
    /// Paths left out because they are no longer what the cell left.
    pub conflicts: Vec<PathConflict>,
}

/// What collection did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", default)]
pub struct Collected {
    /// Objects kept.
    pub kept: u64,
    /// Objects removed.
    pub removed: u64,
    /// Bytes freed.
    pub freed_bytes: u64,
}

/// A part of the store that is damaged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct Damage {
    /// The object or journal frame.
    pub what: String,
    /// What is wrong with it.
    pub detail: String,
}

/// The engine that owns bytes.
///
/// It must keep this promise: after any failure at any instant, every path it touched is either exactly as before the
/// transaction or exactly as the committed one left it. All methods may be called from several threads; at most one
/// transaction publishes at a time, under the workspace lease, whose epoch the caller gives.
pub trait FileEngine: Send + Sync {
    /// Returns the object store.
    fn objects(&self) -> Arc<dyn ObjectStore>;

    /// Returns the live tree.
    fn live(&self) -> Arc<dyn SourceView>;

    /// Opens a file outside the workspace for reading; never one of `/proc`, `/sys` or `/dev`, nor through magic links.
    ///
    /// # Errors
    /// `not_found`, `denied`, `io`; `invalid_input` for what is no regular file; `outside_workspace` for the store.
    fn open_external(&self, path: &Path) -> Result<Box<dyn Read + Send>, Error>;

    /// Records the whole tree (what ignore rules do not exclude) as a snapshot; its bytes go to the object store.
    ///
    /// # Errors
    /// `budget`, `io`; `cancelled` and `deadline` from the token.
    fn snapshot(&self, token: &CancelToken) -> Result<Handle, Error>;

    /// Records one file that was read as a snapshot that can guard an edit.
    ///
    /// # Errors
    /// `budget`, `io`.
    fn snapshot_file(&self, path: &WorkspacePath, mode: u32, digest: Digest, bytes: u64) -> Result<Handle, Error>;

    /// Resolves a snapshot to what it recorded, in order of the paths.
    ///
    /// # Errors
    /// `not_found`, `corrupt`.
    fn manifest(&self, snapshot: &Handle) -> Result<Vec<(WorkspacePath, PathState)>, Error>;

    /// Returns a snapshot as a tree.
    ///
    /// # Errors
    /// `not_found`, `corrupt`.
    fn snapshot_view(&self, snapshot: &Handle) -> Result<Arc<dyn SourceView>, Error>;

    /// Compares two snapshots.
    ///
    /// # Errors
    /// `not_found`, `corrupt`.
    fn diff(&self, before: &Handle, after: &Handle, token: &CancelToken) -> Result<Vec<PathChange>, Error>;

    /// Returns the directory in which the layers of private views lie, made if absent: the place to try whether such a view
    /// can be had. None if this engine has no private views.
    ///
    /// # Errors
    /// `unsupported` if this workspace cannot be seen through one; `io`.
    fn private_place(&self) -> Result<Option<PathBuf>, Error> {
        Ok(None)
    }

    /// Makes every object stored so far survive what the configured durability promises. Reads never need it, and a
    /// commit does it by itself.
    ///
    /// # Errors
    /// `io`.
    fn flush(&self) -> Result<(), Error>;

    /// Begins a transaction. Nothing is written before the first staged effect, and nothing in the tree before
    /// [`Transaction::materialize`] or [`Transaction::commit`].
    ///
    /// # Errors
    /// `io`.
    fn begin(&self, begin: BeginTransaction) -> Result<Box<dyn Transaction>, Error>;

    /// Ends what dead cells left open. The caller holds the workspace lease under `epoch`.
    ///
    /// # Errors
    /// `corrupt`, `io`.
    fn recover(&self, epoch: Epoch, token: &CancelToken) -> Result<Vec<Recovered>, Error>;

    /// Tells whether the journal holds a transaction that recovery has something to do for: one that is neither committed
    /// nor taken back, or a committed one whose last traces are still in the tree.
    ///
    /// # Errors
    /// `io`.
    fn has_open_transaction(&self) -> Result<bool, Error>;

    /// Returns the transactions that [`has_open_transaction`](Self::has_open_transaction) speaks of, oldest first.
    ///
    /// # Errors
    /// `io`.
    fn open_transactions(&self) -> Result<Vec<OpenTransaction>, Error>;

    /// Returns the commits after `sequence`, oldest first.
    ///
    /// Who asks has seen the commit of that number: whatever this engine commits from now on has a greater one, even if the
    /// journal that gave it out is lost.
    ///
    /// # Errors
    /// `corrupt`, `io`.
    fn commits_after(&self, sequence: u64) -> Result<Vec<CommitRecord>, Error>;

    /// Greatest epoch that the journal has seen: a lease's epoch must be greater.
    ///
    /// # Errors
    /// `corrupt`, `io`.
    fn last_epoch(&self) -> Result<Epoch, Error>;

    /// Forgets journal segments whose commits are all at or before `sequence` and no longer undoable.
    ///
    /// # Errors
    /// `io`.
    fn prune(&self, sequence: u64) -> Result<(), Error>;

    /// Stages in a new transaction what takes a committed one back, whole or only `paths`. A path that is neither what
    /// that cell left nor what it found is in the conflicts and not staged; one that is what it found needs nothing.
    ///
    /// # Errors
    /// `not_found` if the journal does not hold it any more; as for [`Transaction::stage`].
    fn revert(
        &self,
        cell: &CellId,
        paths: Option<&[WorkspacePath]>,
        begin: BeginTransaction,
        token: &CancelToken,
    ) -> Result<Reversal, Error>;

    /// Removes objects that nothing reaches from `roots` (objects) or from the journal, sparing young ones.
    ///
    /// # Errors
    /// `busy` while cells live; `corrupt`, `io`.
    fn collect(&self, roots: &[Digest], token: &CancelToken) -> Result<Collected, Error> {
        self.collect_around(roots, &[], token)
    }

    /// Collects as [`collect`](Self::collect), without following what the `opaque` objects name: they are kept if they are
    /// reached, and reach nothing themselves.
    ///
    /// # Errors
    /// As for [`collect`](Self::collect).
    fn collect_around(&self, roots: &[Digest], opaque: &[Digest], token: &CancelToken) -> Result<Collected, Error>;

    /// Checks every object and journal frame.
    ///
    /// # Errors
    /// `io`; `cancelled` and `deadline` from the token. Damage is not an error but the answer.
    fn verify(&self, token: &CancelToken) -> Result<Vec<Damage>, Error>;
}

/// Effects of one cell: staged, then published together, or taken back without a trace.
///
/// A dropped transaction that was neither committed nor restored is restored.
pub trait Transaction: Send {
    /// Stages operations, all or none. Every guard is checked before anything is staged; several operations on one path
    /// chain in order. A guard is the operation's `expect`, else what `reads` says, else none is needed for a change
    /// that names the text it replaces.
    ///
    /// # Errors
    /// `conflict` (a guard, a match, an existing target), `not_found`, `invalid_input`, `outside_workspace`, `denied`,
    /// `budget`, `io`. Nothing is staged then.
    fn stage(
        &mut self,
        operations: &[FileOperation],
        reads: &ReadLog,
        token: &CancelToken,
    ) -> Result<Vec<EditReceipt>, Error>;

    /// Returns the tree as the cell sees it: the live tree under what is staged now. A later stage needs a new view.
    fn view(&self) -> Arc<dyn SourceView>;

    /// Returns a mark to roll back to.
    fn savepoint(&self) -> u64;

    /// Unstages everything staged or captured after the mark; what of it is in the live tree already (materialised or
    /// made by a command) is taken back there, by the rule of [`restore`](Self::restore).
    ///
    /// # Errors
    /// `invalid_input` for a mark of another transaction; `conflict`, `io` where the live tree could not be put back.
    fn roll_back_to(&mut self, savepoint: u64, token: &CancelToken) -> Result<Restoration, Error>;

    /// Tells whether nothing is staged, materialised or captured.
    fn is_empty(&self) -> bool;

    /// Bytes staged so far.
    fn staged_bytes(&self) -> u64;

    /// One receipt a path for everything so far: what it was before the transaction, and what it becomes.
    fn receipts(&self) -> Vec<EditReceipt>;

    /// Writes what is staged into the live tree without committing, for a command to see (tier `baseline`). Journalled
    /// first; [`restore`](Self::restore) takes it back, also after a crash.
    ///
    /// # Errors
    /// `conflict` if the live tree is not as it was when staged; `denied`, `io`. Nothing is left half done.
    fn materialize(&mut self, epoch: Epoch, token: &CancelToken) -> Result<(), Error>;

    /// Prepares to tell what a command changes: preimages of the tracked tree, durable. Returns the tier in force.
    ///
    /// # Errors
    /// `budget`, `io`; `cancelled` and `deadline` from the token.
    fn begin_capture(&mut self, epoch: Epoch, token: &CancelToken) -> Result<CaptureTier, Error>;

    /// Prepares a private view for commands (tier `private`) in place of [`begin_capture`](Self::begin_capture): what is
    /// staged is laid into its upper layer, and the live tree stays as it is. Only for commands that run from now until
    /// [`end_capture`](Self::end_capture); all of them have to share one mount of it.
    ///
    /// # Errors
    /// `unsupported` if this engine has none, or the tree cannot be seen through one; `io`; `cancelled` and `deadline` from
    /// the token.
    fn open_view(&mut self, token: &CancelToken) -> Result<CommandView, Error> {
        let _ = token;
        Err(Error::new(
            crate::ErrorKind::Unsupported,
            "this engine has no private views",
        ))
    }

    /// Makes what changed since [`begin_capture`](Self::begin_capture) or [`open_view`](Self::open_view) effects of this transaction.
    ///
    /// # Errors
    /// `budget`, `io`. The transaction can only be restored then.
    fn end_capture(&mut self, token: &CancelToken) -> Result<Captured, Error>;

    /// Publishes everything and writes the commit record; the seal's objects are stored already. After an `Ok` the
    /// transaction is over and committed; after an error it is over and taken back.
    ///
    /// # Errors
    /// The failure says why, and how the effects were taken back.
    fn commit(
        &mut self,
        epoch: Epoch,
        seal: CommitSeal,
        token: &CancelToken,
    ) -> Result<CommitRecord, Box<CommitFailure>>;

    /// Takes everything back; the transaction is over.
    ///
    /// # Errors
    /// `io` where a path could not be put back: the next recovery tries again.
    fn restore(&mut self) -> Result<Restoration, Error>;
}
