//! Staging: operations become slots of the overlay and planned effects, all or none; nothing is published here.
//!
//! A [`Work`] is persistent data: its clone before an operation is the way back. Effects are kept in the order in which
//! they were staged and will be published in it. A later change of a path is folded into that path's earlier effect
//! while nothing structural (a rename, a removed directory) lies between.

use std::io::Read;
use std::sync::Arc;

use imbl::{OrdMap, Vector};
use zero_contracts::apply::FileOperation;
use zero_contracts::edit::{Anchor, Change, EditReceipt, Expect, ReceiptStatus};
use zero_contracts::files::ReadLog;
use zero_contracts::objects::ObjectWriter as _;
use zero_contracts::read::EntryKind;
use zero_contracts::{CancelToken, Content, Digest, Error, ErrorKind, WorkspacePath};

use crate::engine::Shared;
use crate::node::{Meta, Node};
use crate::overlay::{Body, Located, Overlay, Slot};
use crate::text::{self, Plan};
use crate::tree::{changing, check_file, missing, os};
use crate::view::{View, outside};

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
        if path.is_root() {
            return Err(Error::invalid("the workspace root itself cannot be edited").with_path(path));
        }
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
                Err(conflict(given, format!("`{given}` is there already: {what}")))
            }
        }
    }

    fn create(&mut self, path: &WorkspacePath, content: &Content) -> Result<Vec<EditReceipt>, Error> {
        let at = self.view().canonical(path, false)?;
        self.absent(path, &at)?;
        self.parents(&at)?;
        let (body, digest, bytes) = self.body(content.as_bytes().to_vec())?;
        let diff = text::diff::unified(b"", content.as_bytes());
        self.create_file(
            &at,
            body,
            Node::File {
                mode: 0o666 & !self.shared.umask,
                digest,
                bytes,
            },
        );
        let node = self.work.overlay.get(&at).and_then(Slot::node);
        let mut receipt = receipt(&at, None, node.as_ref());
        receipt.diff = diff;
        Ok(vec![receipt])
    }

    /// Stages a file where nothing is.
    pub fn create_file(&mut self, at: &WorkspacePath, body: Body, after: Node) {
        let Node::File { mode, digest, bytes } = after else {
            return;
        };
        self.set(
            at,
            None,
            Slot::File {
                mode,
                digest,
                bytes,
                body: body.clone(),
            },
        );
        match self.tip(at) {
            Some((
                index,
                Planned::Remove {
                    path,
                    before: before @ Node::File { .. },
                    before_body: Some(before_body),
                },
            )) => {
                let effect = Planned::Replace {
                    path,
                    before,
                    before_body,
                    after,
                    body,
                    keep: false,
                };
                self.work.effects.set(index, effect);
            }
            _ => self.push(
                at,
                Planned::Create {
                    path: at.clone(),
                    after,
                    body: Some(body),
                },
            ),
        }
    }

    fn rewrite(
        &mut self,
        path: &WorkspacePath,
        change: &Change,
        expect: Option<&Expect>,
    ) -> Result<Vec<EditReceipt>, Error> {
        let at = self.view().canonical(path, true)?;
        let current = self.current(&at)?.ok_or_else(|| missing(path))?;
        if let Some(meta) = &current.meta {
            check_file(meta, path)?;
        }
        let (Node::File { mode, digest, bytes }, Some(body)) = (&current.node, &current.body) else {
            return Err(Error::invalid(format!(
                "`{path}` is {}, not a regular file",
                Node::describe(Some(&current.node))
            ))
            .with_path(path));
        };
        let names_text = match change {
            Change::Replace { .. } | Change::Patch { .. } => true,
            Change::InsertBefore { anchor, .. } | Change::InsertAfter { anchor, .. } => {
                matches!(anchor, Anchor::Text(_))
            }
            _ => false,
        };
        self.guard(path, &at, &current.node, expect, names_text)?;
        let here = |e: Error| if e.path.is_none() { e.with_path(path) } else { e };
        let (new, new_digest, size, diff, matches) = if let Change::Content { content } = change {
            let diff = if *bytes <= EDIT_IN_MEMORY {
                text::diff::unified(&self.all(body, digest, path)?, content.as_bytes())
            } else {
                String::new()
            };
            let (body, digest, size) = self.body(content.as_bytes().to_vec())?;
            (body, digest, size, diff, None)
        } else {
            self.edit_text(change, body, digest, *bytes, path).map_err(here)?
        };
        let after = Node::File {
            mode: *mode,
            digest: new_digest,
            bytes: size,
        };
        let mut receipt = receipt(&at, Some(&current.node), Some(&after));
        receipt.diff = diff;
        receipt.notes.extend(matches.map(|n| ("matches".to_owned(), n)));
        if after == current.node {
            self.remember(&at, Some(new_digest));
            return Ok(vec![receipt]);
        }
        if let Some(meta) = current.meta.filter(|meta| meta.links > 1) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "`{path}` has {} hard links: replacing it would separate them. Remove and create it to do that",
                    meta.links
                ),
            )
            .with_path(path));
        }
        self.work.matches.insert(at.clone(), matches.unwrap_or(0));
        self.replace_file(&at, &current, new, after);
        Ok(vec![receipt])
    }

    fn replace_file(&mut self, at: &WorkspacePath, current: &Current, new: Body, after: Node) {
        let Node::File { mode, digest, bytes } = after else {
            return;
        };
        let Some(before_body) = current.body.clone() else {
            return;
        };
        let tip = self.tip(at);
        let slot = Slot::File {
            mode,
            digest,
            bytes,
            body: new.clone(),
        };
        self.set(at, Some(current), slot);
        match tip {
            Some((index, Planned::Create { path, .. })) => {
                self.work.effects.set(
                    index,
                    Planned::Create {
                        path,
                        after,
                        body: Some(new),
                    },
                );
            }
            Some((
                index,
                Planned::Replace {
                    path,
                    before,
                    before_body,
                    keep,
                    ..
                },
            )) => {
                let effect = Planned::Replace {
                    path,
                    before,
                    before_body,
                    after,
                    body: new,
                    keep,
                };
                self.work.effects.set(index, effect);
            }
            Some((index, Planned::Chmod { path, before, .. })) => {
                self.work.effects.set(
                    index,
                    Planned::Replace {
                        path,
                        before,
                        before_body,
                        after,
                        body: new,
                        keep: true,
                    },
                );
            }
            _ => {
                let path = at.clone();
                let before = current.node.clone();
                self.push(
                    at,
                    Planned::Replace {
                        path,
                        before,
                        before_body,
                        after,
                        body: new,
                        keep: true,
                    },
                );
            }
        }
    }

    /// All bytes of a body that is known to be small enough.
    fn all(&self, body: &Body, digest: &Digest, path: &WorkspacePath) -> Result<Arc<[u8]>, Error> {
        if let Body::Memory(bytes) = body {
            return Ok(Arc::clone(bytes));
        }
        let mut bytes = Vec::new();
        let read = self.shared.open_body(body, digest)?.read_to_end(&mut bytes);
        read.map_err(|e| crate::tree::io(&e, "reading", path))?;
        if Digest::of(&bytes) != *digest {
            return Err(changing(path));
        }
        Ok(bytes.into())
    }

    #[allow(clippy::type_complexity)] // body, digest, size, diff, matches: the parts of one answer
    fn edit_text(
        &mut self,
        change: &Change,
        body: &Body,
        digest: &Digest,
        size: u64,
        path: &WorkspacePath,
    ) -> Result<(Body, Digest, u64, String, Option<u64>), Error> {
        let (shared, token) = (Arc::clone(self.shared), self.token);
        let resized = |plan: &Plan| {
            let gone: u64 = plan.splices.iter().map(|s| s.end - s.start).sum();
            size - gone + plan.splices.iter().map(|s| s.bytes.len() as u64).sum::<u64>()
        };
        if size <= EDIT_IN_MEMORY {
            let old = self.all(body, digest, path)?;
            let open = || Ok(Box::new(std::io::Cursor::new(Arc::clone(&old))) as Box<dyn Read + Send>);
            let plan = text::plan(change, &open, token)?;
            self.charge_only(resized(&plan))?;
            let mut new = Vec::with_capacity(resized(&plan) as usize);
            text::splice(&plan.splices, &mut &old[..], &mut new, token)?;
            let diff = text::diff::unified(&old, &new);
            let (body, digest, size) = self.body(new)?;
            return Ok((body, digest, size, diff, plan.matches));
        }
        let open = || shared.open_body(body, digest);
        let plan = text::plan(change, &open, token)?;
        if plan.base != *digest {
            return Err(changing(path));
        }
        self.charge(resized(&plan))?;
        let mut writer = shared.store.writer_of()?;
        let copied = text::splice(&plan.splices, &mut *open()?, &mut writer, token)?;
        text::check_base(&plan, &copied)?;
        let (digest, size) = Box::new(writer).finish()?;
        Ok((Body::Object, digest, size, String::new(), plan.matches))
    }

    /// Refuses what would not fit, before it is made.
    fn charge_only(&self, bytes: u64) -> Result<(), Error> {
        let mut probe = Stager {
            shared: self.shared,
            work: Work {
                bytes: self.work.bytes,
                ..Work::default()
            },
            ..*self
        };
        probe.charge(bytes)
    }

    fn chmod(&mut self, path: &WorkspacePath, mode: u32, expect: Option<&Expect>) -> Result<Vec<EditReceipt>, Error> {
        let at = self.view().canonical(path, true)?;
        if at.is_root() {
            return Err(Error::invalid("the mode of the workspace root cannot be changed").with_path(path));
        }
        let current = self.current(&at)?.ok_or_else(|| missing(path))?;
        self.guard(path, &at, &current.node, expect, true)?;
        let mode = mode & 0o7777;
        let (after, slot) = match (&current.node, self.work.overlay.locate(&at)) {
            (Node::File { digest, bytes, .. }, _) => {
                let body = current.body.clone().ok_or_else(|| missing(path))?;
                let slot = Slot::File {
                    mode,
                    digest: *digest,
                    bytes: *bytes,
                    body,
                };
                (
                    Node::File {
                        mode,
                        digest: *digest,
                        bytes: *bytes,
                    },
                    slot,
                )
            }
            (Node::Directory { .. }, Located::Live(origin)) => (
                Node::Directory { mode },
                Slot::Directory {
                    mode,
                    origin: Some(origin),
                },
            ),
            (Node::Directory { .. }, Located::Slot(Slot::Directory { origin, .. })) => (
                Node::Directory { mode },
                Slot::Directory {
                    mode,
                    origin: origin.clone(),
                },
            ),
            (node, _) => {
                return Err(Error::invalid(format!(
                    "`{path}` is {}, which has no mode to set",
                    Node::describe(Some(node))
                ))
                .with_path(path));
            }
        };
        let receipt = receipt(&at, Some(&current.node), Some(&after));
        if after == current.node {
            return Ok(vec![receipt]);
        }
        let tip = self.tip(&at);
        self.set(&at, Some(&current), slot);
        match (tip, &after) {
            (
                Some((
                    index,
                    Planned::Create {
                        path,
                        body: body @ Some(_),
                        ..
                    },
                )),
                Node::File { .. },
            ) => {
                self.work.effects.set(index, Planned::Create { path, after, body });
            }
            (
                Some((
                    index,
                    Planned::Replace {
                        path,
                        before,
                        before_body,
                        body,
                        keep,
                        ..
                    },
                )),
                _,
            ) => {
                let effect = Planned::Replace {
                    path,
                    before,
                    before_body,
                    after,
                    body,
                    keep,
                };
                self.work.effects.set(index, effect);
            }
            (Some((index, Planned::Chmod { path, before, .. })), Node::File { .. }) => {
                self.work.effects.set(index, Planned::Chmod { path, before, after });
            }
            _ => {
                let effect = Planned::Chmod {
                    path: at.clone(),
                    before: current.node.clone(),
                    after,
                };
                if current.node.is_directory() {
                    self.work.effects.push_back(effect);
                } else {
                    self.push(&at, effect);
                }
            }
        }
        Ok(vec![receipt])
    }

    fn remove(&mut self, path: &WorkspacePath, expect: Option<&Expect>) -> Result<Vec<EditReceipt>, Error> {
        let at = self.view().canonical(path, false)?;
        let current = self.current(&at)?.ok_or_else(|| missing(path))?;
        if let Node::Other = current.node {
            return Err(Error::invalid(format!("`{path}` is {}", Node::describe(Some(&current.node)))).with_path(path));
        }
        self.guard(path, &at, &current.node, expect, false)?;
        if current.node.is_directory() {
            let inside = self.view().entries(&at)?.len();
            if inside > 0 {
                return Err(conflict(
                    path,
                    format!("the directory `{path}` has {inside} entries: remove them first"),
                ));
            }
        }
        let receipt = receipt(&at, Some(&current.node), None);
        self.take_away(&at, &current);
        Ok(vec![receipt])
    }

    fn take_away(&mut self, at: &WorkspacePath, current: &Current) {
        let tip = self.tip(at);
        self.set(at, Some(current), Slot::Absent);
        let directory = current.node.is_directory();
        if directory {
            self.work.overlay.clear_below(at);
            self.seal(at);
        }
        match tip.filter(|_| !directory) {
            Some((index, Planned::Create { .. })) => {
                self.work.effects.set(index, Planned::Nothing);
                self.work.tips.remove(at);
            }
            Some((
                index,
                Planned::Replace {
                    path,
                    before,
                    before_body,
                    ..
                },
            )) => {
                let effect = Planned::Remove {
                    path,
                    before,
                    before_body: Some(before_body),
                };
                self.work.effects.set(index, effect);
            }
            Some((index, Planned::Chmod { path, before, .. })) => {
                let effect = Planned::Remove {
                    path,
                    before,
                    before_body: current.body.clone(),
                };
                self.work.effects.set(index, effect);
            }
            _ => {
                let (before, before_body) = (current.node.clone(), current.body.clone());
                self.push(
                    at,
                    Planned::Remove {
                        path: at.clone(),
                        before,
                        before_body,
                    },
                );
            }
        }
    }

    fn rename(
        &mut self,
        from: &WorkspacePath,
        to: &WorkspacePath,
        expect: Option<&Expect>,
    ) -> Result<Vec<EditReceipt>, Error> {
        let source = self.view().canonical(from, false)?;
        let target = self.view().canonical(to, false)?;
        if source.is_root() {
            return Err(Error::invalid("the workspace root cannot be moved").with_path(from));
        }
        let current = self.current(&source)?.ok_or_else(|| missing(from))?;
        if let Node::Other = current.node {
            return Err(Error::invalid(format!("`{from}` is {}", Node::describe(Some(&current.node)))).with_path(from));
        }
        self.guard(from, &source, &current.node, expect, true)?;
        if target.is_within(&source) {
            return Err(Error::invalid(format!("`{from}` cannot be moved into itself")).with_path(to));
        }
        self.absent(to, &target)?;
        self.parents(&target)?;
        let receipts = vec![
            receipt(&source, Some(&current.node), None),
            receipt(&target, None, Some(&current.node)),
        ];
        let slot = match (&current.node, self.work.overlay.locate(&source)) {
            (_, Located::Slot(slot)) => slot.clone(),
            (Node::Directory { mode }, Located::Live(origin)) => Slot::Directory {
                mode: *mode,
                origin: Some(origin),
            },
            (Node::File { mode, digest, bytes }, Located::Live(origin)) => Slot::File {
                mode: *mode,
                digest: *digest,
                bytes: *bytes,
                body: Body::Live(origin),
            },
            (Node::Symlink { target }, _) => Slot::Symlink {
                target: target.clone().into(),
            },
            _ => return Err(missing(from)),
        };
        // What both paths were, before the map changes under them.
        self.set(&source, Some(&current), Slot::Absent);
        self.set(&target, None, Slot::Absent);
        self.remember(&target, current.node.digest());
        self.seal(&source);
        self.seal(&target);
        self.work.overlay.rename(&source, &target, slot);
        self.work.effects.push_back(Planned::Rename {
            from: source,
            to: target,
            before: current.node,
        });
        Ok(receipts)
    }

    fn copy(
        &mut self,
        from: &WorkspacePath,
        to: &WorkspacePath,
        expect: Option<&Expect>,
    ) -> Result<Vec<EditReceipt>, Error> {
        let source = self.view().canonical(from, false)?;
        let target = self.view().canonical(to, false)?;
        let current = self.current(&source)?.ok_or_else(|| missing(from))?;
        self.guard(from, &source, &current.node, expect, true)?;
        self.absent(to, &target)?;
        match (&current.node, &current.body) {
            (Node::File { mode, digest, bytes }, Some(body)) => {
                self.parents(&target)?;
                self.charge(*bytes)?;
                let body = match body {
                    Body::Live(_) if *bytes > MEMORY_BYTES => {
                        let mut writer = self.shared.store.writer_of()?;
                        let copied =
                            text::splice(&[], &mut *self.shared.open_body(body, digest)?, &mut writer, self.token)?;
                        if copied != *digest {
                            return Err(changing(from));
                        }
                        Box::new(writer).finish()?;
                        Body::Object
                    }
                    Body::Live(_) => Body::Memory(self.all(body, digest, from)?),
                    other => other.clone(),
                };
                self.create_file(
                    &target,
                    body,
                    Node::File {
                        mode: *mode,
                        digest: *digest,
                        bytes: *bytes,
                    },
                );
            }
            (Node::Symlink { target: held }, _) => {
                self.parents(&target)?;
                self.make_symlink(&target, held.clone());
            }
            (node, _) => {
                return Err(Error::invalid(format!(
                    "`{from}` is {}: only files and symlinks are copied",
                    Node::describe(Some(node))
                ))
                .with_path(from));
            }
        }
        let node = self.work.overlay.get(&target).and_then(Slot::node);
        Ok(vec![receipt(&target, None, node.as_ref())])
    }

    fn mkdir(&mut self, path: &WorkspacePath) -> Result<Vec<EditReceipt>, Error> {
        let at = self.view().canonical(path, true)?;
        match self.view().look(&at)? {
            Some(entry) if entry.kind == EntryKind::Directory => {
                let node = Node::Directory { mode: entry.mode };
                Ok(vec![receipt(&at, Some(&node), Some(&node))])
            }
            Some(_) => Err(conflict(
                path,
                format!("`{path}` is there already and is not a directory"),
            )),
            None => {
                let mut receipts = self.parents(&at)?;
                receipts.push(self.make_directory(&at, None)?);
                Ok(receipts)
            }
        }
    }

    fn symlink(&mut self, target: &str, path: &WorkspacePath) -> Result<Vec<EditReceipt>, Error> {
        let raw = zero_contracts::path::unescape(target)?;
        if raw.is_empty() || raw.contains(&0) {
            return Err(
                Error::invalid("a symlink's target is neither empty nor does it contain NUL").with_path("symlink"),
            );
        }
        let at = self.view().canonical(path, false)?;
        self.absent(path, &at)?;
        if raw[0] == b'/' {
            return Err(outside(path));
        }
        // Where it leads, as far as its own `..` go; links on the way are checked when it is followed.
        let mut joined = at.parent().unwrap_or_default().as_bytes().to_vec();
        joined.push(b'/');
        joined.extend_from_slice(&raw);
        WorkspacePath::from_raw(joined.strip_prefix(b"/").unwrap_or(&joined)).map_err(|_| outside(path))?;
        let mut receipts = self.parents(&at)?;
        receipts.clear();
        self.make_symlink(&at, raw);
        let node = self.work.overlay.get(&at).and_then(Slot::node);
        receipts.push(receipt(&at, None, node.as_ref()));
        Ok(receipts)
    }

    /// Stages a symlink where nothing is.
    pub fn make_symlink(&mut self, at: &WorkspacePath, target: Vec<u8>) {
        self.set(
            at,
            None,
            Slot::Symlink {
                target: target.clone().into(),
            },
        );
        self.push(
            at,
            Planned::Create {
                path: at.clone(),
                after: Node::Symlink { target },
                body: None,
            },
        );
    }

    // What reverting a committed transaction needs: changes by path and bytes, already checked.

    /// Replaces what a canonical path holds, which the caller has compared.
    pub fn put(&mut self, at: &WorkspacePath, node: &Node, body: Option<Body>) -> Result<(), Error> {
        let current = self.current(at)?;
        match (node, current) {
            (
                Node::File { .. },
                Some(
                    current @ Current {
                        node: Node::File { .. },
                        ..
                    },
                ),
            ) => {
                let body = body.ok_or_else(|| missing(at))?;
                self.replace_file(at, &current, body, node.clone());
            }
            (node, Some(current)) => {
                self.take_away(at, &current);
                return self.put_new(at, node, body);
            }
            (node, None) => return self.put_new(at, node, body),
        }
        Ok(())
    }

    /// Removes what a canonical path holds, which the caller has compared.
    pub fn take(&mut self, at: &WorkspacePath) -> Result<(), Error> {
        if let Some(current) = self.current(at)? {
            self.take_away(at, &current);
        }
        Ok(())
    }

    /// Sets the mode of a canonical path.
    pub fn set_mode(&mut self, at: &WorkspacePath, mode: u32) -> Result<(), Error> {
        self.chmod(at, mode, Some(&Expect::Any)).map(drop)
    }

    /// Moves a canonical path back.
    pub fn move_back(&mut self, from: &WorkspacePath, to: &WorkspacePath) -> Result<(), Error> {
        self.rename(from, to, Some(&Expect::Any)).map(drop)
    }

    fn put_new(&mut self, at: &WorkspacePath, node: &Node, body: Option<Body>) -> Result<(), Error> {
        self.parents(at)?;
        match node {
            Node::File { .. } => self.create_file(at, body.ok_or_else(|| missing(at))?, node.clone()),
            Node::Directory { mode } => {
                self.make_directory(at, Some(*mode))?;
            }
            Node::Symlink { target } => self.make_symlink(at, target.clone()),
            Node::Other => {}
        }
        Ok(())
    }

    /// What a canonical path holds now.
    pub fn holds(&self, at: &WorkspacePath) -> Result<Option<Node>, Error> {
        Ok(self.current(at)?.map(|current| current.node))
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

impl Work {
    /// What is staged is in the live tree now.
    pub fn land(&mut self) {
        for path in self.first.keys() {
            if let Some(slot) = self.overlay.get(path) {
                self.landed.insert(path.clone(), slot.node());
            }
        }
        self.overlay = Overlay::default();
        self.effects = Vector::new();
        self.tips = OrdMap::new();
    }

    /// A command changed a path.
    pub fn captured(&mut self, path: &WorkspacePath, before: Option<&Node>, after: Option<&Node>) {
        if !self.first.contains_key(path) {
            let body = before.map(|_| Body::Object);
            self.first.insert(
                path.clone(),
                First {
                    node: before.cloned(),
                    body,
                },
            );
        }
        self.landed.insert(path.clone(), after.cloned());
        self.known.remove(path);
    }

    /// One receipt for each path that differs from what it was before the transaction.
    pub fn receipts(&self, shared: &Shared) -> Vec<EditReceipt> {
        let bytes = |node: &Option<Node>, body: &Option<Body>| -> Option<Vec<u8>> {
            let (Some(Node::File { digest, bytes, .. }), Some(body)) = (node, body) else {
                return Some(Vec::new());
            };
            if *bytes > EDIT_IN_MEMORY {
                return None;
            }
            let mut content = Vec::new();
            let read = shared.open_body(body, digest).ok()?.read_to_end(&mut content).is_ok();
            let content = if read && Digest::of(&content) == *digest {
                content
            } else {
                shared.store.get(digest).ok()?
            };
            Some(content)
        };
        let mut receipts = Vec::new();
        for (path, first) in &self.first {
            let slot = self.overlay.get(path);
            let after = match slot {
                Some(slot) => slot.node(),
                None => self.landed.get(path).cloned().flatten(),
            };
            if first.node == after {
                continue;
            }
            let mut receipt = receipt(path, first.node.as_ref(), after.as_ref());
            let body = match slot {
                Some(Slot::File { body, .. }) => Some(body.clone()),
                Some(_) => None,
                None => Some(Body::Live(path.clone())),
            };
            if matches!(after, Some(Node::File { .. }))
                && let (Some(old), Some(new)) = (bytes(&first.node, &first.body), bytes(&after, &body))
            {
                receipt.diff = text::diff::unified(&old, &new);
            }
            if let Some(matches) = self.matches.get(path).filter(|&&matches| matches > 0) {
                receipt.notes.insert("matches".to_owned(), *matches);
            }
            receipts.push(receipt);
        }
        receipts
    }
}
