//! Staging what changes the shape of the tree: removals, moves, copies, directories, symlinks; and what undo needs.

use zero_contracts::edit::{EditReceipt, Expect};
use zero_contracts::objects::ObjectWriter as _;
use zero_contracts::read::EntryKind;
use zero_contracts::{Error, WorkspacePath};

use super::{Current, MEMORY_BYTES, Planned, Stager, conflict, receipt};
use crate::node::Node;
use crate::overlay::{Body, Located, Slot};
use crate::text;
use crate::tree::{changing, missing};
use crate::view::outside;

impl Stager<'_> {
    pub(super) fn remove(&mut self, path: &WorkspacePath, expect: Option<&Expect>) -> Result<Vec<EditReceipt>, Error> {
        let (at, current) = self.guarded(path, false, expect, false)?;
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

    pub(super) fn take_away(&mut self, at: &WorkspacePath, current: &Current) {
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

    pub(super) fn rename(
        &mut self,
        from: &WorkspacePath,
        to: &WorkspacePath,
        expect: Option<&Expect>,
    ) -> Result<Vec<EditReceipt>, Error> {
        let (source, current) = self.guarded(from, false, expect, true)?;
        let target = self.view().canonical(to, false)?;
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

    pub(super) fn copy(
        &mut self,
        from: &WorkspacePath,
        to: &WorkspacePath,
        expect: Option<&Expect>,
    ) -> Result<Vec<EditReceipt>, Error> {
        let (_, current) = self.guarded(from, false, expect, true)?;
        let target = self.view().canonical(to, false)?;
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
                // A copy is a new symlink, and has to be one that could be made by itself.
                if !self.leads_inside(&target, held) {
                    return Err(outside(from));
                }
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

    pub(super) fn mkdir(&mut self, path: &WorkspacePath) -> Result<Vec<EditReceipt>, Error> {
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

    pub(super) fn symlink(&mut self, target: &str, path: &WorkspacePath) -> Result<Vec<EditReceipt>, Error> {
        let raw = zero_contracts::path::unescape(target)?;
        if raw.is_empty() || raw.contains(&0) {
            return Err(
                Error::invalid("a symlink's target is neither empty nor does it contain NUL").with_path("symlink"),
            );
        }
        let at = self.view().canonical(path, false)?;
        self.absent(path, &at)?;
        if raw[0] == b'/' || !self.leads_inside(&at, &raw) {
            return Err(outside(path));
        }
        let mut receipts = self.parents(&at)?;
        receipts.clear();
        self.make_symlink(&at, raw);
        let node = self.work.overlay.get(&at).and_then(Slot::node);
        receipts.push(receipt(&at, None, node.as_ref()));
        Ok(receipts)
    }

    /// Tells whether a symlink would lead to a place in the workspace, as far as its own `..` go; links on the way are
    /// checked when it is followed.
    fn leads_inside(&self, at: &WorkspacePath, target: &[u8]) -> bool {
        use std::os::unix::ffi::OsStrExt;
        let root = self.shared.tree.path().as_os_str().as_bytes();
        let joined = match target.strip_prefix(b"/") {
            Some(_) => match target.strip_prefix(root) {
                Some(rest) if rest.is_empty() || rest[0] == b'/' => rest.to_vec(),
                _ => return false,
            },
            None => [at.parent().unwrap_or_default().as_bytes(), b"/", target].concat(),
        };
        WorkspacePath::from_raw(joined.strip_prefix(b"/").unwrap_or(&joined)).is_ok()
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

    pub(super) fn put_new(&mut self, at: &WorkspacePath, node: &Node, body: Option<Body>) -> Result<(), Error> {
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

    /// What is at a canonical path now, without reading it.
    pub fn look(&self, at: &WorkspacePath) -> Result<Option<EntryKind>, Error> {
        Ok(self.view().look(at)?.map(|entry| entry.kind))
    }

    /// The paths directly in a directory at a canonical path; none if it is none.
    pub fn inside(&self, at: &WorkspacePath) -> Result<Vec<WorkspacePath>, Error> {
        if self.look(at)? != Some(EntryKind::Directory) {
            return Ok(Vec::new());
        }
        Ok(self.view().entries(at)?.into_iter().map(|entry| entry.path).collect())
    }

    /// What a canonical path holds now.
    pub fn holds(&self, at: &WorkspacePath) -> Result<Option<Node>, Error> {
        Ok(self.current(at)?.map(|current| current.node))
    }
}
