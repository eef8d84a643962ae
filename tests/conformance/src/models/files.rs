//! A file engine in memory: the tree, the journal and everything open are values behind one lock.

mod transaction;

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zero_contracts::edit::PathState;
use zero_contracts::files::{
    BeginTransaction, Collected, CommitRecord, Damage, OpenTransaction, PathChange, Recovered, RecoveredOutcome,
    Reversal,
};
use zero_contracts::read::EntryKind;
use zero_contracts::{
    CancelToken, CellId, Digest, Epoch, Error, ErrorKind, FileEngine, Handle, HandleKind, ObjectStore, SourceView,
    Transaction, WorkspacePath,
};

use super::objects::MemoryObjects;
use super::tree::MemoryView;
use crate::faults::files::FileFault;
use crate::suites::files::Files;
use crate::suites::objects::Objects;
use crate::tree::{Node, Tree};
use transaction::{Landed, MemoryTransaction};

/// What is behind every engine of one workspace.
#[derive(Default)]
struct State {
    tree: Tree,
    epoch: Epoch,
    commits: Vec<(CommitRecord, Landed)>,
    /// The greatest number that somebody saw.
    seen: u64,
    /// Transactions that changed the tree and are not over.
    open: Vec<(BeginTransaction, Landed)>,
}

/// A workspace in memory, with the engine on it.
#[derive(Clone, Default)]
pub struct MemoryFiles {
    state: Arc<Mutex<State>>,
    objects: MemoryObjects,
    fault: Option<FileFault>,
}

impl MemoryFiles {
    /// Makes an empty one with a defect.
    pub fn with_fault(fault: FileFault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::default()
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seeded(&self, fault: FileFault) -> bool {
        self.fault == Some(fault)
    }

    fn tree_of(&self, snapshot: &Handle) -> Result<Tree, Error> {
        if snapshot.kind != HandleKind::Snapshot {
            return Err(Error::invalid(format!("{snapshot} is no snapshot")));
        }
        let bytes = self.objects.get(&snapshot.digest)?;
        let nodes: Vec<(Vec<u8>, u32, u8, Vec<u8>)> =
            serde_json::from_slice(&bytes).map_err(|e| Error::new(ErrorKind::Corrupt, e.to_string()))?;
        let nodes = nodes.into_iter().map(|(path, mode, kind, bytes)| {
            let node = match kind {
                0 => Node::File { bytes, mode },
                1 => Node::Directory(mode),
                _ => Node::Symlink(bytes),
            };
            (path, node)
        });
        Ok(Tree(nodes.collect()))
    }

    fn record(&self, tree: &Tree) -> Result<Handle, Error> {
        let nodes: Vec<_> = tree
            .0
            .iter()
            .map(|(path, node)| match node {
                Node::File { bytes, mode } => (path, *mode, 0, &bytes[..]),
                Node::Directory(mode) => (path, *mode, 1, &b""[..]),
                Node::Symlink(target) => (path, 0, 2, &target[..]),
            })
            .collect();
        let bytes = serde_json::to_vec(&nodes).map_err(|e| Error::new(ErrorKind::Internal, e.to_string()))?;
        Ok(Handle {
            kind: HandleKind::Snapshot,
            digest: self.objects.put(&bytes)?,
        })
    }
}

/// What a path is, as receipts and manifests tell it.
pub(crate) fn state_of(node: &Node) -> PathState {
    let (kind, mode, content, bytes) = match node {
        Node::File { bytes, mode } => (EntryKind::File, *mode, Some(bytes), Some(bytes.len() as u64)),
        Node::Directory(mode) => (EntryKind::Directory, *mode, None, None),
        Node::Symlink(target) => (EntryKind::Symlink, 0, Some(target), None),
    };
    PathState {
        kind,
        mode,
        digest: content.map(|content| Digest::of(content)),
        bytes,
    }
}

fn changes(before: &Tree, after: &Tree) -> Result<Vec<PathChange>, Error> {
    let paths: std::collections::BTreeSet<_> = before.0.keys().chain(after.0.keys()).collect();
    paths
        .into_iter()
        .filter(|path| before.0.get(*path) != after.0.get(*path))
        .map(|path| {
            Ok(PathChange {
                path: WorkspacePath::from_raw(path)?,
                before: before.0.get(path).map(state_of),
                after: after.0.get(path).map(state_of),
            })
        })
        .collect()
}

/// The live tree, read anew at every call.
struct Live(MemoryFiles);

impl Live {
    fn now(&self) -> MemoryView {
        MemoryView(self.0.lock().tree.clone())
    }
}

impl SourceView for Live {
    fn entry(&self, path: &WorkspacePath) -> Result<Option<zero_contracts::source::Entry>, Error> {
        self.now().entry(path)
    }

    fn resolve(&self, path: &WorkspacePath) -> Result<Option<zero_contracts::source::Entry>, Error> {
        self.now().resolve(path)
    }

    fn list(&self, path: &WorkspacePath) -> Result<Vec<zero_contracts::source::Entry>, Error> {
        self.now().list(path)
    }

    fn read_link(&self, path: &WorkspacePath) -> Result<Vec<u8>, Error> {
        self.now().read_link(path)
    }

    fn read(&self, path: &WorkspacePath, token: &CancelToken) -> Result<zero_contracts::source::FileContent, Error> {
        self.now().read(path, token)
    }

    fn open(&self, path: &WorkspacePath) -> Result<Box<dyn Read + Send>, Error> {
        self.now().open(path)
    }

    fn walk(
        &self,
        scope: &zero_contracts::source::WalkScope,
        token: &CancelToken,
        visit: &(dyn Fn(zero_contracts::source::Entry) -> std::ops::ControlFlow<()> + Sync),
    ) -> Result<Vec<zero_contracts::find::Skipped>, Error> {
        self.now().walk(scope, token, visit)
    }

    fn freshness(&self) -> zero_contracts::find::Freshness {
        self.now().freshness()
    }
}

impl FileEngine for MemoryFiles {
    fn objects(&self) -> Arc<dyn ObjectStore> {
        Arc::new(self.objects.clone())
    }

    fn live(&self) -> Arc<dyn SourceView> {
        Arc::new(Live(self.clone()))
    }

    fn open_external(&self, path: &Path) -> Result<Box<dyn Read + Send>, Error> {
        let magic = ["/proc", "/sys", "/dev"].iter().any(|magic| path.starts_with(magic));
        if magic && !self.seeded(FileFault::ExternalReadsMagic) {
            return Err(Error::new(ErrorKind::Denied, "files of the kernel are not read"));
        }
        let fail = |e: std::io::Error| Error::from_io(&e, path.display().to_string());
        if !std::fs::metadata(path).map_err(fail)?.is_file() {
            return Err(Error::invalid("it is no regular file"));
        }
        Ok(Box::new(std::fs::File::open(path).map_err(fail)?))
    }

    fn snapshot(&self, token: &CancelToken) -> Result<Handle, Error> {
        token.check()?;
        let mut tree = self.lock().tree.clone();
        if !self.seeded(FileFault::SnapshotTakesIgnored) {
            tree = tree.without_ignored();
        }
        if self.seeded(FileFault::SnapshotForgetsModes) {
            for node in tree.0.values_mut() {
                if let Node::File { mode, .. } = node {
                    *mode = crate::tree::FILE_MODE;
                }
            }
        }
        if self.seeded(FileFault::SnapshotForgetsEmptyDirectories) {
            let empty: Vec<_> = tree
                .0
                .iter()
                .filter(|(path, node)| matches!(node, Node::Directory(_)) && tree.names(path).is_empty())
                .map(|(path, _)| path.clone())
                .collect();
            tree.0.retain(|path, _| !empty.contains(path));
        }
        for node in tree.0.values() {
            if let Node::File { bytes, .. } = node {
                self.objects.put(bytes)?;
            }
        }
        self.record(&tree)
    }

    fn snapshot_file(&self, path: &WorkspacePath, mode: u32, digest: Digest, _: u64) -> Result<Handle, Error> {
        let bytes = self.objects.get(&digest)?;
        self.record(&Tree::new().with(path.as_bytes(), Node::File { bytes, mode }))
    }

    fn manifest(&self, snapshot: &Handle) -> Result<Vec<(WorkspacePath, PathState)>, Error> {
        let tree = self.tree_of(snapshot)?;
        let mut manifest = Vec::new();
        for (path, node) in &tree.0 {
            manifest.push((WorkspacePath::from_raw(path)?, state_of(node)));
        }
        if self.seeded(FileFault::ManifestUnsorted) {
            manifest.reverse();
        }
        Ok(manifest)
    }

    fn snapshot_view(&self, snapshot: &Handle) -> Result<Arc<dyn SourceView>, Error> {
        let tree = self.tree_of(snapshot)?;
        if self.seeded(FileFault::SnapshotViewIsLive) {
            return Ok(self.live());
        }
        Ok(Arc::new(MemoryView(tree)))
    }

    fn diff(&self, before: &Handle, after: &Handle, token: &CancelToken) -> Result<Vec<PathChange>, Error> {
        token.check()?;
        let mut changes = changes(&self.tree_of(before)?, &self.tree_of(after)?)?;
        if self.seeded(FileFault::DiffMissesRemovals) {
            changes.retain(|change| change.after.is_some());
        }
        Ok(changes)
    }

    fn flush(&self) -> Result<(), Error> {
        Ok(())
    }

    fn begin(&self, begin: BeginTransaction) -> Result<Box<dyn Transaction>, Error> {
        Ok(Box::new(MemoryTransaction::new(self.clone(), begin)))
    }

    fn recover(&self, epoch: Epoch, token: &CancelToken) -> Result<Vec<Recovered>, Error> {
        token.check()?;
        let mut state = self.lock();
        state.epoch = state.epoch.max(epoch);
        if self.seeded(FileFault::RecoverForgets) {
            state.open.clear();
        }
        let open = std::mem::take(&mut state.open);
        Ok(open
            .into_iter()
            .rev()
            .map(|(begin, landed)| Recovered {
                cell: begin.cell,
                session: begin.session,
                outcome: RecoveredOutcome::Restored(landed.take_back(&mut state.tree, &self.objects, self.fault)),
            })
            .collect())
    }

    fn has_open_transaction(&self) -> Result<bool, Error> {
        Ok(!self.lock().open.is_empty() && !self.seeded(FileFault::NeverOpen))
    }

    fn open_transactions(&self) -> Result<Vec<OpenTransaction>, Error> {
        let state = self.lock();
        let open = state.open.iter().map(|(begin, _)| OpenTransaction {
            cell: begin.cell.clone(),
            session: begin.session.clone(),
            committed: false,
            capturing: false,
        });
        Ok(open.collect())
    }

    fn commits_after(&self, sequence: u64) -> Result<Vec<CommitRecord>, Error> {
        let from = if self.seeded(FileFault::CommitsFromTheStart) {
            0
        } else {
            sequence
        };
        let mut state = self.lock();
        if !self.seeded(FileFault::SeenIsForgotten) {
            state.seen = state.seen.max(sequence);
        }
        let records = state.commits.iter().map(|(record, _)| record.clone());
        Ok(records.filter(|record| record.sequence > from).collect())
    }

    fn last_epoch(&self) -> Result<Epoch, Error> {
        let epoch = self.lock().epoch;
        Ok(if self.seeded(FileFault::EpochForgotten) {
            Epoch(0)
        } else {
            epoch
        })
    }

    fn prune(&self, _: u64) -> Result<(), Error> {
        Ok(())
    }

    fn revert(
        &self,
        cell: &CellId,
        paths: Option<&[WorkspacePath]>,
        begin: BeginTransaction,
        _: &CancelToken,
    ) -> Result<Reversal, Error> {
        let landed = self
            .lock()
            .commits
            .iter()
            .find(|(record, _)| record.cell == *cell)
            .map(|(_, landed)| landed.clone());
        let Some(landed) = landed else {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no commit of {cell}")));
        };
        let mut transaction = MemoryTransaction::new(self.clone(), begin);
        let whole = paths.filter(|_| !self.seeded(FileFault::RevertIgnoresPaths));
        let conflicts = transaction.stage_reversal(&landed, whole)?;
        Ok(Reversal {
            receipts: transaction.receipts(),
            transaction: Box::new(transaction),
            conflicts,
        })
    }

    fn collect_around(&self, roots: &[Digest], _: &[Digest], token: &CancelToken) -> Result<Collected, Error> {
        token.check()?;
        let mut collected = Collected::default();
        for digest in self.objects.digests() {
            let kept = roots.contains(&digest) && !self.seeded(FileFault::CollectsRoots);
            if kept {
                collected.kept += 1;
            } else if self.seeded(FileFault::CollectsRoots) {
                collected.removed += 1;
                collected.freed_bytes += self.objects.remove(&digest).unwrap_or_default();
            } else {
                // Everything is young here.
                collected.kept += 1;
            }
        }
        Ok(collected)
    }

    fn verify(&self, token: &CancelToken) -> Result<Vec<Damage>, Error> {
        token.check()?;
        if self.seeded(FileFault::VerifySeesNothing) {
            return Ok(Vec::new());
        }
        let digests = self.objects.digests();
        let damaged = digests.iter().filter(|digest| self.objects.get(digest).is_err());
        Ok(damaged
            .map(|digest| Damage {
                what: Handle::blob(*digest).to_string(),
                detail: "its bytes are not those of its digest".into(),
            })
            .collect())
    }
}

impl Files for MemoryFiles {
    fn engine(&self) -> Arc<dyn FileEngine> {
        Arc::new(self.clone())
    }

    fn set(&self, tree: &Tree) {
        self.lock().tree = tree.clone();
    }

    fn tree(&self) -> Tree {
        self.lock().tree.clone()
    }

    fn reopen(&self) {
        if self.seeded(FileFault::CommitsAreLost) {
            self.lock().commits.clear();
        }
    }

    fn damage(&self, digest: &Digest) {
        self.objects.damage(digest);
    }
}
