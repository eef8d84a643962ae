//! What commands left in the upper layer becomes staged effects.
//!
//! The upper layer is compared with what the transaction saw before, entry by entry; only entries of the upper layer are
//! looked at, so the cost is that of what was changed. Bytes go to memory or the store, since the layer goes on being
//! written to by the next command.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use zero_contracts::edit::EditReceipt;
use zero_contracts::objects::ObjectWriter as _;
use zero_contracts::read::EntryKind;
use zero_contracts::response::PathConflict;
use zero_contracts::{Digest, Error, Handle, WorkspacePath};

use super::deep::with_room;
use super::through::{enter, root_rules};
use super::{Layer, Private, is_opaque, let_in, look, names, open_at, set_mode};
use crate::node::{Meta, Node, now};
use crate::overlay::{Body, Located, Slot};
use crate::rules::{Rules, is_rules};
use crate::stage::{Planned, Stager, receipt};
use crate::tree::{io, link_at, os};

/// Content kept in memory by one collection takes at most this much; the rest goes to the store.
const IN_MEMORY: u64 = 32 << 20;
/// Files up to this size are read into memory.
const SMALL: u64 = 256 << 10;

/// One collection under way.
struct Collection<'a, 'b> {
    private: &'a mut Private,
    stager: &'a mut Stager<'b>,
    since: i128,
    room: u64,
    receipts: Vec<EditReceipt>,
}

impl Private {
    /// Ends the view: stages what its commands did.
    pub fn collect(&mut self, stager: &mut Stager<'_>) -> Result<Vec<EditReceipt>, Error> {
        let fail = |e: std::io::Error| io(&e, "looking through", &WorkspacePath::root());
        with_room(|| self.collect_all(stager)).map_err(fail)?
    }

    fn collect_all(&mut self, stager: &mut Stager<'_>) -> Result<Vec<EditReceipt>, Error> {
        let Some(since) = self.since else {
            return Ok(Vec::new());
        };
        // Carried paths are found again, if they are still there.
        let carried: Vec<WorkspacePath> = stager
            .work
            .overlay
            .slots()
            .filter(|(path, slot)| matches!(slot, Slot::Carried { .. }) || self.carried.contains_key(*path))
            .map(|(path, _)| path.clone())
            .collect();
        for path in &carried {
            stager.work.overlay.take(path);
        }
        self.carried.clear();
        stager.work.overlay.carry(std::sync::Arc::clone(&self.upper));
        let root = WorkspacePath::root();
        let again = open_at(self.upper.root(), b".").map_err(|e| os(e, "opening", &root))?;
        let mode = rustix::fs::fstat(&again)
            .map_err(|e| os(e, "looking at", &root))?
            .st_mode
            & 0o7777;
        if mode != self.root_mode {
            // Nothing that an operation could build on, so no slot.
            stager.work.effects.push_back(Planned::Chmod {
                path: root.clone(),
                before: Node::Directory { mode: self.root_mode },
                after: Node::Directory { mode },
            });
            self.root_mode = mode;
        }
        let rules = enter(&self.shared, &root_rules(&self.shared), &root, [true; 2]);
        let mut collection = Collection {
            private: self,
            stager,
            since,
            room: IN_MEMORY,
            receipts: Vec::new(),
        };
        collection.directory(&root, &again, &rules, true)?;
        collection.vanished()?;
        let receipts = collection.receipts;
        self.laid = stager.work.overlay.clone();
        self.since = None;
        // The last tick before now. A change within the same tick, but before, is taken for one after: a conflict too many
        // for who saved then what the next command changes. The other way nothing would tell that it came after, and the
        // next view would have to wait for the clock.
        self.ready = super::coarse_now() - 1;
        Ok(receipts)
    }
}

impl Collection<'_, '_> {
    /// What was laid where the live tree has nothing leaves no whiteout when a command removes it.
    fn vanished(&mut self) -> Result<(), Error> {
        let laid: Vec<WorkspacePath> = self
            .private
            .laid
            .slots()
            .filter(|(_, slot)| !matches!(slot, Slot::Absent | Slot::Carried { .. }))
            .map(|(path, _)| path.clone())
            .collect();
        for path in laid {
            let there = self.private.upper.stat(&path).map_err(|e| os(e, "looking at", &path))?;
            if there.is_none() && self.stager.look(&path)?.is_some() {
                self.remove(&path)?;
            }
        }
        Ok(())
    }

    /// `merged`: what the live tree has here shows through.
    fn directory(&mut self, path: &WorkspacePath, upper: &OwnedFd, rules: &Rules, merged: bool) -> Result<(), Error> {
        for name in names(upper.as_fd()).map_err(|e| os(e, "listing", path))? {
            self.stager.token.check()?;
            let child = path.join(&name)?;
            let Some(found) = look(upper.as_fd(), &name).map_err(|e| os(e, "looking at", &child))? else {
                continue;
            };
            let meta = match found {
                Layer::Whiteout => {
                    self.whiteout(&child, rules)?;
                    continue;
                }
                Layer::Entry(meta) => meta,
            };
            let is_directory = meta.kind == EntryKind::Directory;
            let ignored = !(is_rules(&child) && meta.kind == EntryKind::File) && rules.ignores(&child, is_directory);
            match meta.kind {
                // As everywhere: never opened, never moved. What it took the place of is gone all the same.
                EntryKind::Other => {
                    if !ignored
                        && self
                            .stager
                            .look(&child)?
                            .is_some_and(|before| before != EntryKind::Other)
                    {
                        self.remove(&child)?;
                    }
                }
                EntryKind::Directory if ignored => {
                    let mode = meta.mode;
                    self.stager.work.overlay.set(child.clone(), Slot::Carried { mode });
                    self.private.carried.insert(child, Some(EntryKind::Directory));
                }
                EntryKind::Directory => {
                    self.subdirectory(&child, upper.as_fd(), &name, &meta, rules, merged)?;
                }
                EntryKind::Symlink => {
                    let target = link_at(upper.as_fd(), &name).map_err(|e| os(e, "reading", &child))?;
                    self.entry(&child, Node::Symlink { target }, None, ignored)?;
                }
                EntryKind::File => self.file(&child, upper.as_fd(), &name, &meta, ignored)?,
            }
        }
        Ok(())
    }

    /// Tells whether the upper layer holds here what was laid into it: no command changed it, but the cell itself may have.
    fn is_as_laid(&self, path: &WorkspacePath, node: Option<&Node>) -> bool {
        self.private
            .laid
            .get(path)
            .is_some_and(|slot| slot.node().as_ref() == node)
    }

    fn whiteout(&mut self, path: &WorkspacePath, rules: &Rules) -> Result<(), Error> {
        let Some(before) = self.stager.look(path)? else {
            return Ok(());
        };
        if before != EntryKind::Directory && !is_rules(path) && rules.ignores(path, false) {
            self.stager.work.overlay.set(path.clone(), Slot::Absent);
            self.private.carried.insert(path.clone(), None);
            return Ok(());
        }
        if self.is_as_laid(path, None) {
            return Ok(());
        }
        self.remove(path)
    }

    /// Removes what the transaction sees at a path, with all below it.
    fn remove(&mut self, path: &WorkspacePath) -> Result<(), Error> {
        self.stager.token.check()?;
        for inside in self.stager.inside(path)? {
            self.remove(&inside)?;
        }
        let Some(before) = self.stager.holds(path)? else {
            return Ok(());
        };
        if matches!(before, Node::Other) {
            return Ok(());
        }
        self.doubt(path, Some(&before), None, None)?;
        self.stager.take(path)?;
        self.receipts.push(receipt(path, Some(&before), None));
        Ok(())
    }

    fn subdirectory(
        &mut self,
        path: &WorkspacePath,
        parent: BorrowedFd<'_>,
        name: &[u8],
        meta: &Meta,
        rules: &Rules,
        merged: bool,
    ) -> Result<(), Error> {
        let fail = |e: std::io::Error| io(&e, "opening", path);
        let after = Node::Directory { mode: meta.mode };
        match self.stager.look(path)? {
            None if self.is_as_laid(path, Some(&after)) => return Ok(()),
            Some(EntryKind::Directory) if self.is_as_laid(path, Some(&after)) => {}
            Some(EntryKind::Directory) => {
                let before = self.stager.holds(path)?;
                if before.as_ref() != Some(&after) {
                    self.stager.set_mode(path, meta.mode)?;
                    self.receipts.push(receipt(path, before.as_ref(), Some(&after)));
                }
            }
            found => {
                if found.is_some() {
                    self.remove(path)?;
                }
                self.stager.make_directory(path, Some(meta.mode))?;
                self.receipts.push(receipt(path, None, Some(&after)));
            }
        }
        let closed = let_in(&self.private.shared, parent, name, meta).map_err(fail)?;
        let upper = open_at(parent, name).map_err(|e| fail(e.into()))?;
        let live = self
            .private
            .shared
            .tree
            .stat(path)
            .map_err(|e| os(e, "looking at", path))?;
        let merged = merged && !is_opaque(upper.as_fd()) && live.is_some_and(|live| live.kind == EntryKind::Directory);
        if !merged {
            let kept = names(upper.as_fd()).map_err(|e| fail(e.into()))?;
            for inside in self.stager.inside(path)? {
                let name = inside.file_name().unwrap_or_default();
                if kept.binary_search_by(|kept| kept[..].cmp(name)).is_err() {
                    self.remove(&inside)?;
                }
            }
        }
        let rules = enter(&self.private.shared, rules, path, [true; 2]);
        let done = self.directory(path, &upper, &rules, merged);
        if let Some(mode) = closed {
            set_mode(&self.private.shared, parent, name, mode).map_err(fail)?;
        }
        done
    }

    fn file(
        &mut self,
        path: &WorkspacePath,
        parent: BorrowedFd<'_>,
        name: &[u8],
        meta: &Meta,
        ignored: bool,
    ) -> Result<(), Error> {
        let stamp = meta.stamp_value();
        if let Some((known, node)) = self.private.known.get(path)
            && *known == stamp
            && self.stager.work.overlay.get(path).and_then(Slot::node).as_ref() == Some(node)
        {
            return Ok(());
        }
        let started = now();
        let fail = |e: std::io::Error| io(&e, "reading", path);
        let shared = std::sync::Arc::clone(&self.private.shared);
        let closed = let_in(&shared, parent, name, meta).map_err(fail)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(parent, name, flags, Mode::empty()).map_err(|e| fail(e.into()))?;
        if let Some(mode) = closed {
            shared.seam.chmod(file.as_fd(), mode).map_err(fail)?;
        }
        let mut file = std::fs::File::from(file);
        let (body, digest, bytes) = if meta.size <= SMALL.min(self.room) && !ignored {
            let mut content = Vec::with_capacity(meta.size as usize + 1);
            std::io::Read::read_to_end(&mut file, &mut content).map_err(fail)?;
            self.room -= meta.size.min(self.room);
            let (digest, bytes) = (Digest::of(&content), content.len() as u64);
            (Body::Memory(content.into()), digest, bytes)
        } else {
            let mut writer = shared.store.writer_of()?;
            crate::text::splice(&[], &mut file, &mut writer, self.stager.token)?;
            let (digest, bytes) = Box::new(writer).finish()?;
            (Body::Object, digest, bytes)
        };
        let node = Node::File {
            mode: meta.mode,
            digest,
            bytes,
        };
        if closed.is_none() && meta.settled_at(started) {
            self.private.known.insert(path.clone(), (stamp, node.clone()));
        }
        self.entry(path, node, Some(body), ignored)
    }

    /// Stages a file or symlink.
    fn entry(&mut self, path: &WorkspacePath, after: Node, body: Option<Body>, ignored: bool) -> Result<(), Error> {
        if self.is_as_laid(path, Some(&after)) && !ignored {
            return Ok(());
        }
        if ignored {
            let slot = match (&after, body) {
                (Node::File { mode, digest, bytes }, Some(body)) => Slot::File {
                    mode: *mode,
                    digest: *digest,
                    bytes: *bytes,
                    body,
                },
                (Node::Symlink { target }, _) => Slot::Symlink {
                    target: target.clone().into(),
                },
                _ => return Ok(()),
            };
            self.stager.work.overlay.set(path.clone(), slot);
            self.private.carried.insert(path.clone(), Some(after.kind()));
            return Ok(());
        }
        let before = self.stager.holds(path)?;
        if before.as_ref() == Some(&after) {
            return Ok(());
        }
        match &before {
            Some(Node::Directory { .. }) => self.remove(path)?,
            Some(before) => self.doubt(path, Some(before), Some(&after), body.as_ref())?,
            None => {}
        }
        match (&before, &after) {
            (Some(Node::File { digest, .. }), Node::File { mode, digest: new, .. }) if digest == new => {
                self.stager.set_mode(path, *mode)?;
            }
            _ => self.stager.put(path, &after, body)?,
        }
        self.receipts.push(receipt(path, before.as_ref(), Some(&after)));
        Ok(())
    }

    /// Notes a path that the live tree changed too, since the view was opened.
    fn doubt(
        &mut self,
        path: &WorkspacePath,
        before: Option<&Node>,
        after: Option<&Node>,
        body: Option<&Body>,
    ) -> Result<(), Error> {
        let shared = &self.private.shared;
        let staged = self.stager.work.overlay.get(path).map(Slot::node);
        if staged.is_some() && staged != self.private.laid.get(path).map(Slot::node) {
            self.private.doubts.push(PathConflict {
                path: path.to_string(),
                detail: format!("`{path}` was changed by a command and, while it ran, by this cell's own edit"),
                ours: before.and_then(Node::handle),
                theirs: None,
            });
            return Ok(());
        }
        let Located::Live(origin) = self.stager.work.overlay.locate(path) else {
            return Ok(());
        };
        let Some(live) = shared.tree.stat(&origin).map_err(|e| os(e, "looking at", path))? else {
            return Ok(());
        };
        let changed = match live.kind {
            // Its time also changes with what it holds; of that each entry is looked at for itself.
            EntryKind::Directory => after.is_none() && live.mtime.min(live.ctime) > self.since,
            // Anybody may have set the other time, even to one that is yet to come; this one changes with it.
            _ => live.ctime > self.since,
        };
        if !changed {
            return Ok(());
        }
        if let Some(Body::Memory(content)) = body {
            shared.store.put(content)?;
        }
        self.private.doubts.push(PathConflict {
            path: path.to_string(),
            detail: format!(
                "`{path}` was changed by a command and, while it ran, by somebody else: {} now",
                Node::describe(before)
            ),
            ours: after.and_then(Node::handle),
            theirs: shared
                .keep_live(&origin)
                .filter(|handle: &Handle| Some(*handle) != after.and_then(Node::handle)),
        });
        Ok(())
    }
}
