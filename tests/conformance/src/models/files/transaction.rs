//! The simple transaction: a map from every path it touches to what was there and what is to be there.

use std::collections::BTreeMap;
use std::sync::Arc;

use zero_contracts::apply::FileOperation;
use zero_contracts::edit::{Change, EditReceipt, Expect, ReceiptStatus};
use zero_contracts::files::{
    BeginTransaction, Captured, CommitFailure, CommitRecord, CommitSeal, ReadLog, Restoration,
};
use zero_contracts::response::{CaptureTier, PathConflict};
use zero_contracts::{
    CancelToken, Content, Digest, Epoch, Error, ErrorKind, Handle, ObjectStore, SourceView, Transaction, WorkspacePath,
    path,
};

use super::{MemoryFiles, state_of};
use crate::faults::files::FileFault;
use crate::models::edits::changed;
use crate::models::objects::MemoryObjects;
use crate::models::tree::MemoryView;
use crate::tree::{DIRECTORY_MODE, FILE_MODE, Node, Tree};

/// What was at a path before, and what is there after.
type Step = (Option<Node>, Option<Node>);

/// Paths with both versions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Landed(BTreeMap<Vec<u8>, Step>);

fn put(tree: &mut Tree, path: &[u8], node: Option<Node>) {
    match node {
        Some(node) => {
            tree.0.insert(path.to_vec(), node);
        }
        None => {
            tree.0.remove(path);
        }
    }
}

impl Landed {
    /// Puts everything back that is still as it was left.
    pub(super) fn take_back(&self, tree: &mut Tree, objects: &MemoryObjects, fault: Option<FileFault>) -> Restoration {
        let mut restoration = Restoration::default();
        for (key, (before, after)) in self.0.iter().rev() {
            let Ok(path) = WorkspacePath::from_raw(key) else {
                continue;
            };
            let live = tree.0.get(key).cloned();
            if live == *before {
                continue;
            }
            let holds_more =
                matches!(live, Some(Node::Directory(_))) && before.is_none() && !tree.names(key).is_empty();
            let ours = live == *after && !holds_more;
            if ours || fault == Some(FileFault::RestoreOverwrites) {
                let node = match (fault, before) {
                    (Some(FileFault::RestoreForgetsModes), Some(Node::File { bytes, .. })) => Some(Node::File {
                        bytes: bytes.clone(),
                        mode: FILE_MODE,
                    }),
                    (_, before) => before.clone(),
                };
                put(tree, key, node);
                restoration.restored.push(path);
            } else if fault != Some(FileFault::RestoreTellsNoConflicts) {
                let handle = |node: &Option<Node>| match node {
                    Some(Node::File { bytes, .. }) => objects.put(bytes).ok().map(Handle::blob),
                    _ => None,
                };
                restoration.conflicts.push(PathConflict {
                    path: path.to_string(),
                    detail: "it is not what the cell left; it was not overwritten".into(),
                    ours: handle(before),
                    theirs: handle(&live),
                });
            }
        }
        restoration
    }
}

pub(super) struct MemoryTransaction {
    files: MemoryFiles,
    begin: BeginTransaction,
    staged: Landed,
    /// What of it is in the live tree.
    landed: Landed,
    staged_bytes: u64,
    marks: Vec<(Landed, Landed, u64)>,
    capture: Option<Tree>,
    over: bool,
}

impl MemoryTransaction {
    pub(super) fn new(files: MemoryFiles, begin: BeginTransaction) -> Self {
        Self {
            files,
            begin,
            staged: Landed::default(),
            landed: Landed::default(),
            staged_bytes: 0,
            marks: Vec::new(),
            capture: None,
            over: false,
        }
    }

    fn fault(&self) -> Option<FileFault> {
        self.files.fault
    }

    fn seeded(&self, fault: FileFault) -> bool {
        self.files.seeded(fault)
    }

    /// The tree as the cell sees it.
    fn seen(&self) -> Tree {
        let mut tree = self.files.lock().tree.clone();
        for (path, (_, after)) in &self.staged.0 {
            put(&mut tree, path, after.clone());
        }
        tree
    }

    fn check(&self) -> Result<(), Error> {
        if self.over {
            Err(Error::invalid("the transaction is over"))
        } else {
            Ok(())
        }
    }

    /// Notes a change of one path of the tree the cell sees.
    fn change(&mut self, tree: &mut Tree, path: &[u8], node: Option<Node>) {
        let before = tree.0.get(path).cloned();
        put(tree, path, node.clone());
        self.staged.0.entry(path.to_vec()).or_insert((before, None)).1 = node;
    }

    fn parents(&mut self, tree: &mut Tree, path: &[u8]) -> Result<(), Error> {
        for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            match tree.node(&path[..at]) {
                Some(Node::Directory(_)) => {}
                Some(_) => return Err(Error::new(ErrorKind::NotFound, "a parent is not a directory")),
                None => self.change(tree, &path[..at], Some(Node::Directory(DIRECTORY_MODE))),
            }
        }
        Ok(())
    }

    fn create(&mut self, tree: &mut Tree, at: &WorkspacePath, node: Node) -> Result<(), Error> {
        let real = tree.real(at.as_bytes(), false)?;
        if tree.node(&real).is_some() && !self.seeded(FileFault::CreateOverwrites) {
            return Err(Error::new(ErrorKind::Conflict, format!("`{at}` is there already")).with_path(at));
        }
        self.parents(tree, &real)?;
        self.change(tree, &real, Some(node));
        Ok(())
    }

    fn present(&self, tree: &Tree, at: &WorkspacePath, follow: bool) -> Result<(Vec<u8>, Node), Error> {
        let real = tree.real(at.as_bytes(), follow)?;
        match tree.node(&real) {
            Some(node) => Ok((real, node)),
            None => Err(Error::new(ErrorKind::NotFound, format!("there is no `{at}`")).with_path(at)),
        }
    }

    fn guard(
        &self,
        at: &WorkspacePath,
        node: &Node,
        expect: Option<&Expect>,
        reads: &ReadLog,
        names_its_text: bool,
    ) -> Result<(), Error> {
        let content = match node {
            Node::File { bytes, .. } => bytes,
            Node::Symlink(target) => target,
            Node::Directory(_) => return Ok(()),
        };
        let wanted = match expect {
            Some(Expect::Any) => return Ok(()),
            Some(Expect::Digest(digest)) => Some(*digest),
            Some(Expect::Snapshot(handle)) => {
                let tree = self.files.tree_of(handle)?;
                tree.0.get(at.as_bytes()).and_then(|node| state_of(node).digest)
            }
            None if self.seeded(FileFault::ReadLogIgnored) => None,
            None => reads.get(at).copied(),
        };
        let why = match wanted {
            _ if self.seeded(FileFault::GuardsIgnored) && expect.is_some() => return Ok(()),
            Some(digest) if digest == Digest::of(content) => return Ok(()),
            Some(_) => "it is not what was expected",
            None if names_its_text || self.seeded(FileFault::UnreadMayBeReplaced) => return Ok(()),
            None => "it was not read: give `expect`",
        };
        Err(Error::new(ErrorKind::Conflict, format!("`{at}`: {why}")).with_path(at))
    }

    fn apply(&mut self, tree: &mut Tree, operation: &FileOperation, reads: &ReadLog) -> Result<(), Error> {
        match operation {
            FileOperation::Edit { path, change, expect } => self.edit(tree, path, change, expect.as_ref(), reads),
            FileOperation::Move { from, to, expect } => {
                let (source, node) = self.present(tree, from, false)?;
                self.guard(from, &node, expect.as_ref(), reads, true)?;
                if to.is_within(from) {
                    return Err(Error::invalid("a directory cannot be moved into itself").with_path(to));
                }
                let target = tree.real(to.as_bytes(), false)?;
                self.create(tree, to, node)?;
                let below = [&source[..], b"/"].concat();
                let inside: Vec<_> = tree
                    .0
                    .iter()
                    .filter(|(key, _)| key.starts_with(&below))
                    .map(|(k, n)| (k.clone(), n.clone()))
                    .collect();
                for (key, node) in inside {
                    self.change(tree, &key, None);
                    if !self.seeded(FileFault::MoveLosesTheInside) {
                        self.change(tree, &[&target[..], &key[source.len()..]].concat(), Some(node));
                    }
                }
                self.change(tree, &source, None);
                Ok(())
            }
            FileOperation::Copy { from, to, expect } => {
                let (_, mut node) = self.present(tree, from, false)?;
                self.guard(from, &node, expect.as_ref(), reads, true)?;
                if let (true, Node::File { mode, .. }) = (self.seeded(FileFault::CopyLosesTheMode), &mut node) {
                    *mode = FILE_MODE;
                }
                self.create(tree, to, node)
            }
            FileOperation::Mkdir { path } => match tree.node(&tree.real(path.as_bytes(), true)?) {
                Some(Node::Directory(_)) => Ok(()),
                _ => self.create(tree, path, Node::Directory(DIRECTORY_MODE)),
            },
            FileOperation::Symlink { target, path: at } => {
                let raw = path::unescape(target)?;
                let mut probe = tree.clone();
                probe.0.insert(at.as_bytes().to_vec(), Node::Symlink(raw.clone()));
                if !self.seeded(FileFault::SymlinksLeadOut) {
                    probe.real(at.as_bytes(), true)?;
                }
                self.create(tree, at, Node::Symlink(raw))
            }
        }
    }

    fn edit(
        &mut self,
        tree: &mut Tree,
        at: &WorkspacePath,
        change: &Change,
        expect: Option<&Expect>,
        reads: &ReadLog,
    ) -> Result<(), Error> {
        if let Change::Create { create } = change {
            let bytes = create.as_bytes().to_vec();
            self.staged_bytes += bytes.len() as u64;
            return self.create(tree, at, Node::File { bytes, mode: FILE_MODE });
        }
        let removes = matches!(change, Change::Remove);
        let (real, node) = self.present(tree, at, !removes)?;
        let names_its_text = matches!(
            change,
            Change::Replace { .. }
                | Change::Patch { .. }
                | Change::Mode { .. }
                | Change::InsertAfter {
                    anchor: zero_contracts::edit::Anchor::Text(_),
                    ..
                }
                | Change::InsertBefore {
                    anchor: zero_contracts::edit::Anchor::Text(_),
                    ..
                }
        );
        self.guard(at, &node, expect, reads, names_its_text)?;
        match (change, node) {
            (Change::Remove, Node::Directory(_)) if !tree.names(&real).is_empty() => {
                Err(Error::new(ErrorKind::Conflict, format!("`{at}` is not empty")).with_path(at))
            }
            (Change::Remove, _) => {
                self.change(tree, &real, None);
                Ok(())
            }
            (Change::Mode { mode }, Node::File { bytes, .. }) => {
                self.change(tree, &real, Some(Node::File { bytes, mode: *mode }));
                Ok(())
            }
            (Change::Mode { mode }, Node::Directory(_)) => {
                self.change(tree, &real, Some(Node::Directory(*mode)));
                Ok(())
            }
            (change, Node::File { bytes, mode }) => {
                let change = self.spoil(change.clone());
                let mut new = changed(&bytes, &change)?.unwrap_or(bytes);
                if self.seeded(FileFault::NewlinesNormalised) {
                    new.retain(|byte| *byte != b'\r');
                }
                self.staged_bytes += new.len() as u64;
                let mode = if self.seeded(FileFault::EditLosesTheMode) {
                    FILE_MODE
                } else {
                    mode
                };
                let real = if self.seeded(FileFault::EditReplacesSymlinks) {
                    at.as_bytes().to_vec()
                } else {
                    real
                };
                self.change(tree, &real, Some(Node::File { bytes: new, mode }));
                Ok(())
            }
            _ => Err(Error::invalid(format!("`{at}` is no regular file")).with_path(at)),
        }
    }

    /// Changes what is asked for, where that is the defect.
    fn spoil(&self, change: Change) -> Change {
        match (self.fault(), change) {
            (
                Some(FileFault::ReplacementIsExpanded),
                Change::Replace {
                    find,
                    replacement,
                    count,
                },
            ) => Change::Replace {
                replacement: {
                    let text = |content: &Content| String::from_utf8_lossy(content.as_bytes()).into_owned();
                    Content::Text(text(&replacement).replace("$&", &text(&find)))
                },
                find,
                count,
            },
            (Some(FileFault::AmbiguousTakesAll), Change::Replace { find, replacement, .. }) => Change::Replace {
                find,
                replacement,
                count: zero_contracts::edit::Count::All,
            },
            (_, change) => change,
        }
    }

    /// Stages the reverse of what a commit left; what is no longer so is a conflict.
    pub(super) fn stage_reversal(
        &mut self,
        landed: &Landed,
        paths: Option<&[WorkspacePath]>,
    ) -> Result<Vec<PathConflict>, Error> {
        let mut tree = self.seen();
        let mut conflicts = Vec::new();
        for (key, (before, after)) in landed.0.iter().rev() {
            let path = WorkspacePath::from_raw(key)?;
            if paths.is_some_and(|paths| !paths.iter().any(|wanted| path.is_within(wanted))) {
                continue;
            }
            let live = tree.0.get(key).cloned();
            if live == *after || self.seeded(FileFault::RevertOverwrites) {
                self.change(&mut tree, key, before.clone());
            } else if live != *before || self.seeded(FileFault::RevertRefusesWhatIsBack) {
                conflicts.push(PathConflict {
                    path: path.to_string(),
                    detail: "it is no longer what that cell left".into(),
                    ours: None,
                    theirs: None,
                });
            }
        }
        Ok(conflicts)
    }

    /// Puts what is staged into the live tree, unless that is no longer what it was.
    fn land(&mut self, epoch: Epoch) -> Result<(), Error> {
        let mut state = self.files.lock();
        if epoch < state.epoch && !self.files.seeded(FileFault::FenceIgnored) {
            return Err(Error::new(ErrorKind::Conflict, format!("epoch {epoch} is over")));
        }
        state.epoch = epoch;
        let mut next = state.tree.clone();
        let mut landed = self.landed.clone();
        for (key, (before, after)) in &self.staged.0 {
            let expected = landed.0.get(key).map_or(before, |(_, landed)| landed);
            if next.0.get(key) != expected.as_ref() && !self.files.seeded(FileFault::CommitOverwrites) {
                let path = WorkspacePath::from_raw(key)?;
                if self.files.seeded(FileFault::RefusalLeavesTraces) {
                    state.tree = next;
                }
                return Err(
                    Error::new(ErrorKind::Conflict, format!("`{path}` changed since it was staged")).with_path(path),
                );
            }
            put(&mut next, key, after.clone());
            landed.0.entry(key.clone()).or_insert_with(|| (before.clone(), None)).1 = after.clone();
        }
        state.tree = next;
        self.landed = landed;
        let cell = &self.begin.cell;
        state.open.retain(|(begin, _)| begin.cell != *cell);
        if !self.landed.0.is_empty() {
            state.open.push((self.begin.clone(), self.landed.clone()));
        }
        Ok(())
    }

    fn end(&mut self) {
        self.over = true;
        let cell = &self.begin.cell;
        self.files.lock().open.retain(|(begin, _)| begin.cell != *cell);
    }

    fn take_back(&mut self) -> Restoration {
        let mut state = self.files.lock();
        let restoration = self
            .landed
            .take_back(&mut state.tree, &self.files.objects, self.files.fault);
        drop(state);
        self.landed = Landed::default();
        restoration
    }
}

impl Transaction for MemoryTransaction {
    fn stage(
        &mut self,
        operations: &[FileOperation],
        reads: &ReadLog,
        token: &CancelToken,
    ) -> Result<Vec<EditReceipt>, Error> {
        self.check()?;
        token.check()?;
        let (staged, bytes) = (self.staged.clone(), self.staged_bytes);
        self.marks.push((staged.clone(), self.landed.clone(), bytes));
        let mut tree = self.seen();
        let mut outcome = Ok(());
        for operation in operations {
            outcome = outcome.and_then(|()| self.apply(&mut tree, operation, reads));
        }
        if outcome.is_ok() && self.staged_bytes > self.begin.staged_bytes && !self.seeded(FileFault::BudgetIgnored) {
            outcome = Err(Error::new(ErrorKind::Budget, "too much is staged"));
        }
        if let Err(e) = outcome {
            if !self.seeded(FileFault::FailureStagesAPart) {
                (self.staged, self.staged_bytes) = (staged, bytes);
            }
            self.marks.pop();
            return Err(e);
        }
        if self.seeded(FileFault::StagingIsLive) {
            self.land(Epoch(u64::MAX))?;
        }
        let changed = |receipt: &EditReceipt| operations.iter().any(|o| o.paths().contains(&&receipt.path));
        Ok(self.receipts().into_iter().filter(changed).collect())
    }

    fn view(&self) -> Arc<dyn SourceView> {
        if self.seeded(FileFault::ViewIsLive) {
            return Arc::new(MemoryView(self.files.lock().tree.clone()));
        }
        Arc::new(MemoryView(self.seen()))
    }

    fn savepoint(&self) -> u64 {
        self.marks.len() as u64
    }

    fn roll_back_to(&mut self, savepoint: u64, token: &CancelToken) -> Result<Restoration, Error> {
        self.check()?;
        token.check()?;
        if savepoint > self.marks.len() as u64 && !self.seeded(FileFault::AnyMarkWillDo) {
            return Err(Error::invalid("that savepoint is of another transaction"));
        }
        if self.seeded(FileFault::RollBackDoesNothing) {
            return Ok(Restoration::default());
        }
        let Some((staged, landed, bytes)) = self.marks.get(savepoint as usize).cloned() else {
            return Ok(Restoration::default());
        };
        let late = Landed(
            self.landed
                .0
                .clone()
                .into_iter()
                .filter(|(key, _)| !landed.0.contains_key(key))
                .collect(),
        );
        let restoration = late.take_back(&mut self.files.lock().tree, &self.files.objects, self.files.fault);
        (self.staged, self.landed, self.staged_bytes) = (staged, landed, bytes);
        self.marks.truncate(savepoint as usize);
        Ok(restoration)
    }

    fn is_empty(&self) -> bool {
        self.staged.0.is_empty() && self.landed.0.is_empty()
    }

    fn staged_bytes(&self) -> u64 {
        if self.seeded(FileFault::NothingWeighs) {
            0
        } else {
            self.staged_bytes
        }
    }

    fn receipts(&self) -> Vec<EditReceipt> {
        let steps = self.staged.0.iter().filter(|(_, (before, after))| before != after);
        let receipts = steps.filter_map(|(key, (before, after))| {
            let path = WorkspacePath::from_raw(key).ok()?;
            Some(EditReceipt {
                status: ReceiptStatus::Staged,
                path,
                before: before
                    .as_ref()
                    .filter(|_| !self.seeded(FileFault::ReceiptsForgetBefore))
                    .map(state_of),
                after: after.as_ref().map(state_of),
                diff: String::new(),
                notes: BTreeMap::new(),
            })
        });
        receipts.collect()
    }

    fn materialize(&mut self, epoch: Epoch, token: &CancelToken) -> Result<(), Error> {
        self.check()?;
        token.check()?;
        if self.seeded(FileFault::MaterializeDoesNothing) {
            return Ok(());
        }
        self.land(epoch)
    }

    fn begin_capture(&mut self, epoch: Epoch, token: &CancelToken) -> Result<CaptureTier, Error> {
        self.materialize(epoch, token)?;
        self.capture = Some(self.files.lock().tree.clone());
        Ok(CaptureTier::Baseline)
    }

    fn end_capture(&mut self, token: &CancelToken) -> Result<Captured, Error> {
        token.check()?;
        let Some(before) = self.capture.take() else {
            return Ok(Captured::default());
        };
        if self.seeded(FileFault::CaptureSeesNothing) {
            return Ok(Captured::default());
        }
        let after = self.files.lock().tree.clone();
        let mut captured = Captured::default();
        for change in super::changes(&before, &after)? {
            let key = change.path.as_bytes().to_vec();
            let (was, is) = (before.0.get(&key).cloned(), after.0.get(&key).cloned());
            for landed in [&mut self.staged, &mut self.landed] {
                landed.0.entry(key.clone()).or_insert_with(|| (was.clone(), None)).1 = is.clone();
            }
            captured.receipts.push(EditReceipt {
                status: ReceiptStatus::Staged,
                path: change.path,
                before: change.before,
                after: change.after,
                diff: String::new(),
                notes: BTreeMap::new(),
            });
        }
        let open = (self.begin.clone(), self.landed.clone());
        let mut state = self.files.lock();
        state.open.retain(|(begin, _)| begin.cell != open.0.cell);
        state.open.push(open);
        Ok(captured)
    }

    fn commit(
        &mut self,
        epoch: Epoch,
        seal: CommitSeal,
        token: &CancelToken,
    ) -> Result<CommitRecord, Box<CommitFailure>> {
        let check = if self.seeded(FileFault::CommitUncancellable) {
            Ok(())
        } else {
            token.check()
        };
        let landed = self.check().and(check).and_then(|()| self.land(epoch));
        if let Err(error) = landed {
            let restoration = self.take_back();
            self.end();
            return Err(Box::new(CommitFailure { error, restoration }));
        }
        self.end();
        let mut state = self.files.lock();
        let sequence = if self.files.seeded(FileFault::SequenceStands) {
            1
        } else {
            let last = state.commits.last().map_or(0, |(last, _)| last.sequence);
            last.max(state.seen) + 1
        };
        let seal = if self.files.seeded(FileFault::SealIsLost) {
            CommitSeal {
                state: None,
                intents: Vec::new(),
                ..seal
            }
        } else {
            seal
        };
        let record = CommitRecord {
            sequence,
            cell: self.begin.cell.clone(),
            epoch,
            seal,
        };
        state.commits.push((record.clone(), self.landed.clone()));
        Ok(record)
    }

    fn restore(&mut self) -> Result<Restoration, Error> {
        let restoration = if self.seeded(FileFault::RestoreDoesNothing) {
            Restoration::default()
        } else {
            self.take_back()
        };
        self.end();
        Ok(restoration)
    }
}

impl Drop for MemoryTransaction {
    fn drop(&mut self) {
        if !self.over && !self.seeded(FileFault::DropDoesNothing) {
            self.take_back();
            self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_noted_with_what_was_there_first() {
        let files = MemoryFiles::default();
        let begin = BeginTransaction {
            cell: "c".parse().expect("a cell id"),
            session: "s".parse().expect("a session name"),
            staged_bytes: 100,
        };
        let mut transaction = MemoryTransaction::new(files, begin);
        let mut tree = Tree::new().file("a", "1");
        for text in ["2", "3"] {
            let node = Node::File {
                bytes: text.into(),
                mode: FILE_MODE,
            };
            transaction.change(&mut tree, b"a", Some(node));
        }
        let step = transaction.staged.0.get(&b"a"[..]).cloned();
        let file = |text: &str| {
            Some(Node::File {
                bytes: text.into(),
                mode: FILE_MODE,
            })
        };
        assert_eq!(step, Some((file("1"), file("3"))));
    }
}
