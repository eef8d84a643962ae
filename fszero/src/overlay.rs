//! What a transaction has staged, as a persistent map over the live tree: cloning it is free.
//!
//! Only paths that changed have a slot. A directory slot says which live directory lies beneath it, so moving a large
//! directory is one slot. Paths are canonical: no parent of a slot is a symlink.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use zero_contracts::{Digest, WorkspacePath};

use crate::node::Node;
use crate::tree::Tree;

/// Where the bytes of a staged file are.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// Small content.
    Memory(Arc<[u8]>),
    /// In the object store, under the file's digest.
    Object,
    /// In the live file at this canonical path, unchanged.
    Live(WorkspacePath),
}

/// What is staged at one path.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    Absent,
    File {
        mode: u32,
        digest: Digest,
        bytes: u64,
        body: Body,
    },
    /// `origin` is the live directory beneath it; none for a new one.
    Directory {
        mode: u32,
        origin: Option<WorkspacePath>,
    },
    Symlink {
        target: Arc<[u8]>,
    },
    /// A directory that ignore rules exclude, made by a command in its private view: it is no effect, and lies in the view's
    /// upper layer until it is carried over.
    Carried {
        mode: u32,
    },
}

impl Slot {
    pub fn node(&self) -> Option<Node> {
        match self {
            Self::Absent => None,
            Self::File {
                mode, digest, bytes, ..
            } => Some(Node::File {
                mode: *mode,
                digest: *digest,
                bytes: *bytes,
            }),
            Self::Directory { mode, .. } | Self::Carried { mode } => Some(Node::Directory { mode: *mode }),
            Self::Symlink { target } => Some(Node::Symlink {
                target: target.to_vec(),
            }),
        }
    }
}

/// Where a path leads.
#[derive(Debug)]
pub(crate) enum Located<'a> {
    Slot(&'a Slot),
    /// The live tree, at this path.
    Live(WorkspacePath),
    /// The upper layer of a private view, at this path.
    Carried(&'a Arc<Tree>, WorkspacePath),
    Nothing,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    slots: OrdMap<WorkspacePath, Slot>,
    symlinks: usize,
    /// Where carried directories lie.
    carried: Option<Arc<Tree>>,
}

/// Puts `tail`, a path below `from`, below `to` instead.
pub(crate) fn rebase(path: &WorkspacePath, from: &WorkspacePath, to: &WorkspacePath) -> WorkspacePath {
    let skip = if from.is_root() { 0 } else { from.as_bytes().len() };
    let mut raw = to.as_bytes().to_vec();
    raw.push(b'/');
    raw.extend_from_slice(&path.as_bytes()[skip..]);
    // Two paths joined are a path: `from_raw` only drops the doubled slash, and a leading one if `to` is the root.
    let raw = if to.is_root() { &raw[1..] } else { &raw[..] };
    let raw = raw.strip_prefix(b"/").unwrap_or(raw);
    WorkspacePath::from_raw(raw).unwrap_or_default()
}

impl Overlay {
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Tells whether a symlink may stand where the live tree has none.
    pub fn has_symlinks(&self) -> bool {
        self.symlinks > 0
    }

    pub fn get(&self, path: &WorkspacePath) -> Option<&Slot> {
        self.slots.get(path)
    }

    pub fn set(&mut self, path: WorkspacePath, slot: Slot) {
        self.symlinks += usize::from(matches!(slot, Slot::Symlink { .. }));
        if let Some(Slot::Symlink { .. }) = self.slots.insert(path, slot) {
            self.symlinks -= 1;
        }
    }

    /// Says where carried directories lie.
    pub fn carry(&mut self, tree: Arc<Tree>) {
        self.carried = Some(tree);
    }

    /// The tree of a carried directory at this very path.
    pub fn carried_at(&self, path: &WorkspacePath) -> Option<&Arc<Tree>> {
        match self.slots.get(path) {
            Some(Slot::Carried { .. }) => self.carried.as_ref(),
            _ => None,
        }
    }

    /// All slots, in the order of the paths.
    pub fn slots(&self) -> impl Iterator<Item = (&WorkspacePath, &Slot)> {
        self.slots.iter()
    }

    /// Forgets a slot.
    pub fn take(&mut self, path: &WorkspacePath) -> Option<Slot> {
        let slot = self.slots.remove(path);
        self.symlinks -= usize::from(matches!(slot, Some(Slot::Symlink { .. })));
        slot
    }

    pub fn locate(&self, path: &WorkspacePath) -> Located<'_> {
        if self.slots.is_empty() {
            return Located::Live(path.clone());
        }
        if let Some(slot) = self.slots.get(path) {
            return Located::Slot(slot);
        }
        let mut above = path.parent();
        while let Some(ancestor) = above {
            match self.slots.get(&ancestor) {
                Some(Slot::Directory {
                    origin: Some(origin), ..
                }) => {
                    return Located::Live(rebase(path, &ancestor, origin));
                }
                Some(Slot::Carried { .. }) => {
                    return match &self.carried {
                        Some(tree) => Located::Carried(tree, path.clone()),
                        None => Located::Nothing,
                    };
                }
                Some(_) => return Located::Nothing,
                None => above = ancestor.parent(),
            }
        }
        Located::Live(path.clone())
    }

    /// Every slot below a directory, itself left out.
    pub fn below<'a>(&'a self, directory: &WorkspacePath) -> impl Iterator<Item = (&'a WorkspacePath, &'a Slot)> {
        let directory = directory.clone();
        let start = edge(&directory, b'/');
        let start = if directory.is_root() {
            Bound::Excluded(directory.clone())
        } else {
            Bound::Included(start)
        };
        self.slots
            .range((start, Bound::Unbounded))
            .take_while(move |(path, _)| path.is_within(&directory))
    }

    /// The slots directly in a directory; what lies deeper is jumped over.
    pub fn children(&self, directory: &WorkspacePath) -> Vec<(WorkspacePath, Slot)> {
        let mut found = Vec::new();
        let depth = directory.components().count();
        let mut from = if directory.is_root() {
            Bound::Excluded(directory.clone())
        } else {
            Bound::Included(edge(directory, b'/'))
        };
        while let Some((path, slot)) = self.slots.range((from, Bound::Unbounded)).next() {
            if !path.is_within(directory) {
                break;
            }
            if path.components().count() == depth + 1 {
                found.push((path.clone(), slot.clone()));
                from = Bound::Excluded(path.clone());
            } else {
                let names: Vec<&[u8]> = path.components().take(depth + 1).collect();
                let child = WorkspacePath::from_raw(&names.join(&b'/')).unwrap_or_default();
                from = Bound::Included(edge(&child, b'/' + 1));
            }
        }
        found
    }

    /// Moves everything staged at and below `from` to `to`, and leaves `from` absent.
    pub fn rename(&mut self, from: &WorkspacePath, to: &WorkspacePath, moved: Slot) {
        let below: Vec<WorkspacePath> = self.below(from).map(|(path, _)| path.clone()).collect();
        // Slots that remain below an absent path would be found by nobody but `children`.
        let stale: Vec<WorkspacePath> = self.below(to).map(|(path, _)| path.clone()).collect();
        for path in stale {
            self.take(&path);
        }
        for path in below {
            if let Some(slot) = self.take(&path) {
                self.set(rebase(&path, from, to), slot);
            }
        }
        self.set(from.clone(), Slot::Absent);
        self.set(to.clone(), moved);
    }

    /// Forgets what is staged below a path that is removed.
    pub fn clear_below(&mut self, directory: &WorkspacePath) {
        let below: Vec<WorkspacePath> = self.below(directory).map(|(path, _)| path.clone()).collect();
        for path in below {
            self.take(&path);
        }
    }
}

/// The path's bytes followed by one more, as a bound in the order of bytes. A path that would end in a slash is not
/// normal, so the bound for descendants is the smallest normal path behind it: `p/` and the byte 1.
fn edge(path: &WorkspacePath, byte: u8) -> WorkspacePath {
    let mut raw = path.as_bytes().to_vec();
    raw.push(byte);
    if byte == b'/' {
        raw.push(1);
    }
    WorkspacePath::from_raw(&raw).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(text: &str) -> WorkspacePath {
        text.parse().unwrap()
    }

    fn directory(origin: Option<&str>) -> Slot {
        Slot::Directory {
            mode: 0o755,
            origin: origin.map(p),
        }
    }

    #[test]
    fn children_jump_over_what_lies_deeper() {
        let mut overlay = Overlay::default();
        for path in ["a/b/c", "a/b/d", "a/b-x", "a/b.y/z", "a", "ab", "a/b0"] {
            overlay.set(p(path), Slot::Absent);
        }
        let names = |dir: &str| {
            overlay
                .children(&p(dir))
                .into_iter()
                .map(|(p, _)| p.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("a"), ["a/b-x", "a/b0"]);
        assert_eq!(names("."), ["a", "ab"]);
        assert_eq!(names("a/b"), ["a/b/c", "a/b/d"]);
        assert_eq!(
            (overlay.below(&p("a/b.y")).count(), overlay.below(&p("ab")).count()),
            (1, 0)
        );
    }

    #[test]
    fn a_moved_directory_leads_to_where_it_was() {
        let mut overlay = Overlay::default();
        overlay.set(p("d/new"), Slot::Absent);
        overlay.rename(&p("d"), &p("e"), directory(Some("d")));
        assert!(matches!(overlay.locate(&p("e/x/y")), Located::Live(at) if at == p("d/x/y")));
        assert!(matches!(overlay.locate(&p("e/new")), Located::Slot(Slot::Absent)));
        assert!(matches!(overlay.locate(&p("d/x")), Located::Nothing));
        overlay.set(p("f"), directory(None));
        assert!(matches!(overlay.locate(&p("f/x")), Located::Nothing));
        assert!(matches!(overlay.locate(&p("g/x")), Located::Live(at) if at == p("g/x")));
    }
}
