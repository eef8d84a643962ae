//! Staging content and modes of files.

use std::io::Read;
use std::sync::Arc;

use zero_contracts::edit::{Anchor, Change, EditReceipt, Expect};
use zero_contracts::objects::ObjectWriter as _;
use zero_contracts::{Content, Digest, Error, ErrorKind, WorkspacePath};

use super::{Current, EDIT_IN_MEMORY, Planned, Stager, Work, receipt};
use crate::node::Node;
use crate::overlay::{Body, Located, Slot};
use crate::text::{self, Plan};
use crate::tree::{changing, missing};

impl Stager<'_> {
    pub(super) fn create(&mut self, path: &WorkspacePath, content: &Content) -> Result<Vec<EditReceipt>, Error> {
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

    pub(super) fn rewrite(
        &mut self,
        path: &WorkspacePath,
        change: &Change,
        expect: Option<&Expect>,
    ) -> Result<Vec<EditReceipt>, Error> {
        let names_text = match change {
            Change::Replace { .. } | Change::Patch { .. } => true,
            Change::InsertBefore { anchor, .. } | Change::InsertAfter { anchor, .. } => {
                matches!(anchor, Anchor::Text(_))
            }
            _ => false,
        };
        let (at, current) = self.guarded(path, true, expect, names_text)?;
        let (Node::File { mode, digest, bytes }, Some(body)) = (&current.node, &current.body) else {
            return Err(Error::invalid(format!(
                "`{path}` is {}, not a regular file",
                Node::describe(Some(&current.node))
            ))
            .with_path(path));
        };
        let here = |e: Error| if e.path.is_none() { e.with_path(path) } else { e };
        let (new, new_digest, size, diff, matches) = if let Change::Content { content } = change {
            let token = self.token;
            let new = text::whole(content, &|| self.shared.open_body(body, digest), token).map_err(here)?;
            let diff = if *bytes <= EDIT_IN_MEMORY {
                text::diff::unified(&self.all(body, digest, path)?, &new)
            } else {
                String::new()
            };
            let (body, digest, size) = self.body(new)?;
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

    pub(super) fn replace_file(&mut self, at: &WorkspacePath, current: &Current, new: Body, after: Node) {
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
    pub(super) fn all(&self, body: &Body, digest: &Digest, path: &WorkspacePath) -> Result<Arc<[u8]>, Error> {
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

    pub(super) fn chmod(
        &mut self,
        path: &WorkspacePath,
        mode: u32,
        expect: Option<&Expect>,
    ) -> Result<Vec<EditReceipt>, Error> {
        let (at, current) = self.guarded(path, true, expect, true)?;
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
}
