//! Staging: operations become slots of the overlay and planned effects, all or none; nothing is published here.
//!
//! A [`Work`] is persistent data: its clone before an operation is the way back. Effects are kept in the order in which
//! they were staged and will be published in it. A later change of a path is folded into that path's earlier effect
//! while nothing structural (a rename, a removed directory) lies between.

mod content;
mod receipts;
mod structure;

use std::sync::Arc;

use imbl::{OrdMap, Vector};
use zero_contracts::apply::FileOperation;
use zero_contracts::edit::{Change, EditReceipt, Expect, ReceiptStatus};
use zero_contracts::files::ReadLog;
use zero_contracts::read::EntryKind;
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, WorkspacePath};

use crate::engine::Shared;
use crate::node::{Meta, Node};
use crate::overlay::{Body, Located, Overlay, Slot};
use crate::tree::{missing, os};
use crate::view::View;

/// Content up to this size is staged in memory, larger content as an object.
const MEMORY_BYTES: u64 = 256 * 1024;

/// Files up to this size are edited in memory; larger ones as streams.
const EDIT_IN_MEMORY: u64 = 16 << 20;

/// An effect that is planned, with what publication needs beyond what the journal records.
#[derive(Clone, Debug)]
pub(crate) enum Planned {
    /// It was folded away.
    Nothing,
    Create {
        path: WorkspacePath,
        after: Node,
        body: Option<Body>,
    },
    Replace {
        path: WorkspacePath,
        before: Node,
        before_body: Body,
        after: Node,
        body: Body,
        /// Owner, access list and attributes of what is replaced are kept.
        keep: bool,
    },
    Remove {
        path: WorkspacePath,
        before: Node,
        before_body: Option<Body>,
    },
    Rename {
        from: WorkspacePath,
        to: WorkspacePath,
        before: Node,
    },
    Chmod {
        path: WorkspacePath,
        before: Node,
        after: Node,
    },
}

/// What a path was before the transaction.
#[derive(Clone, Debug)]
struct First {
    node: Option<Node>,
    body: Option<Body>,
}

/// Everything staged so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    pub overlay: Overlay,
    pub effects: Vector<Planned>,
    /// The effect of a path that a later change of it may still be folded into.
    tips: OrdMap<WorkspacePath, usize>,
    /// What each path was before the transaction, in the order of the paths.
    first: OrdMap<WorkspacePath, First>,
    /// Digests that a path had in this transaction: what the cell read of it remains a good guard.
    known: OrdMap<WorkspacePath, Vector<Digest>>,
    /// How many matches the last change of a path replaced.
    matches: OrdMap<WorkspacePath, u64>,
    /// What paths became by what is in the live tree already: published effects and those of commands.
    pub landed: OrdMap<WorkspacePath, Option<Node>>,
    /// Bytes staged.
    pub bytes: u64,
}

/// What a canonical path holds now, as the cell sees it.
struct Current {
    node: Node,
    body: Option<Body>,
    meta: Option<Meta>,
}

/// Stages operations on a copy of the work.
pub(crate) struct Stager<'a> {
    pub shared: &'a Arc<Shared>,
    pub work: Work,
    pub reads: &'a ReadLog,
    pub token: &'a CancelToken,
    pub budget: u64,
}

fn conflict(path: &WorkspacePath, detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::Conflict, detail).with_path(path)
}

impl Stager<'_> {
    fn view(&self) -> View {
        View {
            shared: Arc::clone(self.shared),
            overlay: self.work.overlay.clone(),
            live: false,
        }
    }

    /// Looks at a canonical path; a file's digest is computed if it is not known.
    fn current(&self, path: &WorkspacePath) -> Result<Option<Current>, Error> {
        match self.work.overlay.locate(path) {
            Located::Nothing => Ok(None),
            Located::Slot(Slot::Carried { .. }) | Located::Carried(..) => Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "`{path}` is output of a command of this cell that ignore rules exclude: change it by a command, or in a later cell"
                ),
            )
            .with_path(path)),
            Located::Slot(slot) => {
                let body = match slot {
                    Slot::File { body, .. } => Some(body.clone()),
                    _ => None,
                };
                let meta = match &body {
                    Some(Body::Live(origin)) => self.shared.tree.stat(origin).map_err(|e| os(e, "looking at", path))?,
                    _ => None,
                };
                Ok(slot.node().map(|node| Current { node, body, meta }))
            }
            Located::Live(origin) => {
                let found = self.shared.tree.node(&origin, self.token)?;
                Ok(found.map(|(node, meta)| {
                    let body = matches!(node, Node::File { .. }).then_some(Body::Live(origin));
                    Current {
                        node,
                        body,
                        meta: Some(meta),
                    }
                }))
            }
        }
    }

    /// Stages one operation.
    pub fn apply(&mut self, operation: &FileOperation) -> Result<Vec<EditReceipt>, Error> {
        self.token.check()?;
        match operation {
            FileOperation::Edit { path, change, expect } => self.edit(path, change, expect.as_ref()),
            FileOperation::Move { from, to, expect } => self.rename(from, to, expect.as_ref()),
            FileOperation::Copy { from, to, expect } => self.copy(from, to, expect.as_ref()),
            FileOperation::Mkdir { path } => self.mkdir(path),
            FileOperation::Symlink { target, path } => self.symlink(target, path),
        }
    }

    fn edit(
        &mut self,
        path: &WorkspacePath,
        change: &Change,
        expect: Option<&Expect>,
    ) -> Result<Vec<EditReceipt>, Error> {
        match change {
            Change::Create { create } => {
                if matches!(expect, Some(Expect::Digest(_) | Expect::Snapshot(_))) {
                    return Err(conflict(
                        path,
                        "`create` needs a path where nothing is, and `expect` names content",
                    ));
                }
                self.create(path, create)
            }
            Change::Remove => self.remove(path, expect),
            Change::Mode { mode } => self.chmod(path, *mode, expect),
            _ => self.rewrite(path, change, expect),
        }
    }

    /// Finds what a change is of, where it really is, and checks the change's guard. Devices and the root are refused.
    fn guarded(
        &self,
        given: &WorkspacePath,
        follow: bool,
        expect: Option<&Expect>,
        names_text: bool,
    ) -> Result<(WorkspacePath, Current), Error> {
        let at = self.view().canonical(given, follow)?;
        if at.is_root() {
            return Err(Error::invalid("the workspace root itself cannot be changed").with_path(given));
        }
        let current = self.current(&at)?.ok_or_else(|| missing(given))?;
        if let Node::Other = current.node {
            let what = Node::describe(Some(&current.node));
            return Err(
                Error::invalid(format!("`{given}` is {what}, which is never opened or changed")).with_path(given),
            );
        }
        self.guard(given, &at, &current.node, expect, names_text)?;
        Ok((at, current))
    }

    /// Checks the guard of a change.
    fn guard(
        &self,
        given: &WorkspacePath,
        at: &WorkspacePath,
        now: &Node,
        expect: Option<&Expect>,
        names_text: bool,
    ) -> Result<(), Error> {
        let digest = now.digest();
        let wrong = |wanted: &Digest| {
            conflict(
                given,
                format!(
                    "`{given}` is not what was expected: {} where digest {}… was; read it again",
                    Node::describe(Some(now)),
                    &wanted.to_hex()[..12]
                ),
            )
        };
        match expect {
            Some(Expect::Any) => Ok(()),
            Some(Expect::Digest(wanted)) if digest == Some(*wanted) => Ok(()),
            Some(Expect::Digest(wanted)) => Err(wrong(wanted)),
            Some(Expect::Snapshot(handle)) => {
                let recorded = crate::snapshot::manifest(&self.shared.store, handle)?;
                let entry = recorded.iter().find(|(path, _)| path == given || path == at);
                match entry {
                    None => Err(conflict(given, format!("the snapshot does not hold `{given}`"))),
                    Some((_, node)) if node == now => Ok(()),
                    Some((_, node)) => Err(conflict(
                        given,
                        format!(
                            "`{given}` is {} and the snapshot says {}; read it again",
                            Node::describe(Some(now)),
                            Node::describe(Some(node))
                        ),
                    )),
                }
            }
            None => {
                let read = self.reads.get(given).or_else(|| self.reads.get(at));
                let known = self.work.known.get(at);
                match read {
                    Some(read) if digest == Some(*read) => Ok(()),
                    Some(read) if known.is_some_and(|known| known.contains(read)) => Ok(()),
                    Some(read) => Err(wrong(read)),
                    None if names_text || known.is_some() || now.kind() != EntryKind::File => Ok(()),
                    None => Err(conflict(
                        given,
                        format!(
                            "this change does not name the text it replaces and `{given}` was never read: read it first, or pass expect: \"any\""
                        ),
                    )),
                }
            }
        }
    }

    /// Content as a body, stored if it is large.
    fn body(&mut self, bytes: Vec<u8>) -> Result<(Body, Digest, u64), Error> {
        let length = bytes.len() as u64;
        self.charge(length)?;
        if length > MEMORY_BYTES {
            return Ok((Body::Object, self.shared.store.put(&bytes)?, length));
        }
        let digest = Digest::of(&bytes);
        Ok((Body::Memory(bytes.into()), digest, length))
    }

    fn charge(&mut self, bytes: u64) -> Result<(), Error> {
        self.work.bytes = self.work.bytes.saturating_add(bytes);
        if self.work.bytes > self.budget {
            return Err(Error::new(
                ErrorKind::Budget,
                format!("more than {} bytes would be staged by this cell", self.budget),
            ));
        }
        Ok(())
    }

    fn remember(&mut self, path: &WorkspacePath, digest: Option<Digest>) {
        if let Some(digest) = digest {
            let mut known = self.work.known.get(path).cloned().unwrap_or_default();
            if !known.contains(&digest) {
                known.push_back(digest);
                self.work.known.insert(path.clone(), known);
            }
        }
    }

    /// Notes what a path was before its first change, and what it becomes.
    fn set(&mut self, path: &WorkspacePath, was: Option<&Current>, slot: Slot) {
        if !self.work.first.contains_key(path) {
            // What a moved directory brought along was not at this path before.
            let here = matches!(self.work.overlay.locate(path), Located::Live(origin) if origin == *path);
            let first = match was.filter(|_| here) {
                Some(was) => First {
                    node: Some(was.node.clone()),
                    body: was.body.clone(),
                },
                None => First { node: None, body: None },
            };
            self.work.first.insert(path.clone(), first);
        }
        if let Some(was) = was {
            self.remember(path, was.node.digest());
        }
        self.remember(path, slot.node().and_then(|node| node.digest()));
        self.work.overlay.set(path.clone(), slot);
    }

    fn push(&mut self, path: &WorkspacePath, effect: Planned) {
        self.work.tips.insert(path.clone(), self.work.effects.len());
        self.work.effects.push_back(effect);
    }

    fn tip(&self, path: &WorkspacePath) -> Option<(usize, Planned)> {
        let at = *self.work.tips.get(path)?;
        Some((at, self.work.effects.get(at)?.clone()))
    }

    /// Nothing staged at or below a path may be folded into any more.
    fn seal(&mut self, path: &WorkspacePath) {
        let below: Vec<_> = self
            .work
            .tips
            .range(path.clone()..)
            .map(|(p, _)| p.clone())
            .take_while(|p| p.as_bytes().starts_with(path.as_bytes()))
            .collect();
        for sealed in below.iter().filter(|p| p.is_within(path)) {
            self.work.tips.remove(sealed);
        }
    }

    /// Makes the directories above a canonical path that are missing.
    fn parents(&mut self, path: &WorkspacePath) -> Result<Vec<EditReceipt>, Error> {
        let mut missing = Vec::new();
        let mut at = path.parent();
        while let Some(directory) = at {
            if directory.is_root() {
                break;
            }
            match self.view().look(&directory)? {
                Some(entry) if entry.kind == EntryKind::Directory => break,
                Some(_) => return Err(conflict(path, format!("`{directory}` is not a directory"))),
                None => {
                    at = directory.parent();
                    missing.push(directory);
                }
            }
        }
        let mut receipts = Vec::new();
        for directory in missing.into_iter().rev() {
            receipts.push(self.make_directory(&directory, None)?);
        }
        Ok(receipts)
    }

    /// Stages a directory where nothing is and whose parent is there.
    pub fn make_directory(&mut self, path: &WorkspacePath, mode: Option<u32>) -> Result<EditReceipt, Error> {
        let mode = mode.unwrap_or(0o777 & !self.shared.umask | self.inherited(path)?);
        self.set(path, None, Slot::Directory { mode, origin: None });
        let after = Node::Directory { mode };
        let effect = Planned::Create {
            path: path.clone(),
            after: after.clone(),
            body: None,
        };
        self.work.effects.push_back(effect);
        self.work.tips.remove(path);
        Ok(receipt(path, None, Some(&after)))
    }

    /// A directory in a set-group-id directory is one, too.
    fn inherited(&self, path: &WorkspacePath) -> Result<u32, Error> {
        let parent = path.parent().unwrap_or_default();
        let mode = match self.view().look(&parent)? {
            Some(entry) => entry.mode,
            None => 0,
        };
        Ok(mode & 0o2000)
    }

    fn absent(&self, given: &WorkspacePath, at: &WorkspacePath) -> Result<(), Error> {
        if at.is_root() {
            return Err(Error::invalid("the workspace root is there already").with_path(given));
        }
        // Looking does not read: what is there need not be readable to be in the way.
        match self.view().look(at)? {
            None => Ok(()),
            Some(entry) => {
                let what = match entry.kind {
                    EntryKind::File => "a file",
                    EntryKind::Directory => "a directory",
                    EntryKind::Symlink => "a symlink",
                    EntryKind::Other => "a FIFO, socket or device",
                };
                Err(conflict(
                    given,
                    format!("`{given}` is there already: {what}; name another path, or change what is there"),
                ))
            }
        }
    }
}

pub(crate) fn receipt(path: &WorkspacePath, before: Option<&Node>, after: Option<&Node>) -> EditReceipt {
    EditReceipt {
        status: ReceiptStatus::Staged,
        path: path.clone(),
        before: before.map(Node::state),
        after: after.map(Node::state),
        diff: String::new(),
        notes: std::collections::BTreeMap::new(),
    }
}
