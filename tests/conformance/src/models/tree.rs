//! A view of a tree in memory.

use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use std::sync::Arc;

use zero_contracts::find::{Freshness, Skipped};
use zero_contracts::read::EntryKind;
use zero_contracts::source::{Entry, FileContent, Stamp, WalkScope};
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, SourceView, WorkspacePath};

use crate::suites::source::Views;
use crate::tree::{DIRECTORY_MODE, Node, Tree};

/// How many symlinks a path may lead through.
const LINKS: usize = 40;

/// A view of a tree that does not change.
#[derive(Clone, Debug, Default)]
pub struct MemoryView(pub Tree);

/// Makes such views.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryViews;

impl Views for MemoryViews {
    fn view(&self, tree: &Tree) -> Arc<dyn SourceView> {
        Arc::new(MemoryView(tree.clone()))
    }
}

fn outside(path: &[u8]) -> Error {
    let shown = zero_contracts::path::escape(path);
    Error::new(ErrorKind::OutsideWorkspace, format!("`{shown}` leads out")).with_path(shown)
}

fn not_found(path: &[u8]) -> Error {
    let shown = zero_contracts::path::escape(path);
    Error::new(ErrorKind::NotFound, format!("there is no `{shown}`")).with_path(shown)
}

impl Tree {
    pub(crate) fn node(&self, path: &[u8]) -> Option<Node> {
        if path.is_empty() {
            return Some(Node::Directory(DIRECTORY_MODE));
        }
        self.0.get(path).cloned()
    }

    /// Where a path really is: symlinks on the way are followed, the last one only if asked for.
    pub(crate) fn real(&self, path: &[u8], follow: bool) -> Result<Vec<u8>, Error> {
        let mut open: Vec<Vec<u8>> = path.split(|b| *b == b'/').rev().map(<[u8]>::to_vec).collect();
        let mut at = Vec::new();
        let mut links = 0;
        while let Some(name) = open.pop() {
            match &name[..] {
                b"" | b"." => {}
                b".." => match at.iter().rposition(|b| *b == b'/') {
                    Some(end) => at.truncate(end),
                    None if at.is_empty() => return Err(outside(path)),
                    None => at.clear(),
                },
                _ => {
                    let mut next = at.clone();
                    if !next.is_empty() {
                        next.push(b'/');
                    }
                    next.extend_from_slice(&name);
                    match self.node(&next) {
                        Some(Node::Symlink(target)) if follow || !open.is_empty() => {
                            links += 1;
                            if target.first() == Some(&b'/') {
                                return Err(outside(path));
                            }
                            if links > LINKS {
                                return Err(Error::new(ErrorKind::NotFound, "symlinks lead in a circle"));
                            }
                            open.extend(target.split(|b| *b == b'/').rev().map(<[u8]>::to_vec));
                        }
                        _ => at = next,
                    }
                }
            }
        }
        Ok(at)
    }

    pub(crate) fn entry_at(&self, at: &[u8]) -> Result<Option<Entry>, Error> {
        let Some(node) = self.node(at) else { return Ok(None) };
        let (kind, bytes, mode) = match &node {
            Node::File { bytes, mode } => (EntryKind::File, &bytes[..], *mode),
            Node::Directory(mode) => (EntryKind::Directory, &b""[..], *mode),
            Node::Symlink(target) => (EntryKind::Symlink, &target[..], 0),
        };
        let size = if kind == EntryKind::File { bytes.len() as u64 } else { 0 };
        let hex = Digest::of(bytes).to_hex();
        Ok(Some(Entry {
            path: WorkspacePath::from_raw(at)?,
            kind,
            bytes: size,
            mode,
            stamp: Stamp {
                value: u128::from_str_radix(&hex[..32], 16).unwrap_or_default(),
                settled: true,
            },
        }))
    }

    /// The names in a directory, in order.
    pub(crate) fn names(&self, directory: &[u8]) -> BTreeSet<Vec<u8>> {
        let prefix = if directory.is_empty() {
            Vec::new()
        } else {
            [directory, b"/"].concat()
        };
        self.0
            .keys()
            .filter_map(|key| key.strip_prefix(&prefix[..]))
            .filter(|rest| !rest.is_empty() && !rest.contains(&b'/'))
            .map(<[u8]>::to_vec)
            .collect()
    }

    /// The tree without what is ignored; `.git` is not in it either.
    pub(crate) fn without_ignored(&self) -> Self {
        let mut kept = Self::default();
        for (path, node) in &self.0 {
            let parent = path
                .iter()
                .rposition(|b| *b == b'/')
                .map_or(&b""[..], |end| &path[..end]);
            let above = parent.is_empty() || kept.0.contains_key(parent);
            let own = path.rsplit(|b| *b == b'/').next() != Some(b".git");
            if above && own && !self.is_ignored(path, matches!(node, Node::Directory(_))) {
                kept.0.insert(path.clone(), node.clone());
            }
        }
        kept
    }

    /// Whether a `.gitignore` above says so; names, `name/` and `*.extension` are all it knows.
    fn is_ignored(&self, path: &[u8], directory: bool) -> bool {
        let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
        let mut above = path;
        loop {
            above = above
                .iter()
                .rposition(|b| *b == b'/')
                .map_or(&b""[..], |end| &above[..end]);
            let rules = if above.is_empty() {
                b".gitignore".to_vec()
            } else {
                [above, b"/.gitignore"].concat()
            };
            if let Some(Node::File { bytes, .. }) = self.node(&rules) {
                let hit = bytes.split(|b| *b == b'\n').any(|rule| match rule.strip_suffix(b"/") {
                    Some(rule) => directory && rule == name,
                    None => match rule.strip_prefix(b"*") {
                        Some(end) => !end.is_empty() && name.ends_with(end),
                        None => !rule.is_empty() && rule == name,
                    },
                });
                if hit {
                    return true;
                }
            }
            if above.is_empty() {
                return false;
            }
        }
    }
}

impl MemoryView {
    fn file(&self, path: &WorkspacePath) -> Result<(Entry, Vec<u8>), Error> {
        let at = self.0.real(path.as_bytes(), true)?;
        match (self.0.entry_at(&at)?, self.0.node(&at)) {
            (Some(entry), Some(Node::File { bytes, .. })) => Ok((entry, bytes)),
            (None, _) => Err(not_found(path.as_bytes())),
            _ => Err(Error::invalid(format!("`{path}` is no regular file")).with_path(path)),
        }
    }
}

impl SourceView for MemoryView {
    fn entry(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        self.0.entry_at(&self.0.real(path.as_bytes(), false)?)
    }

    fn resolve(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        self.0.entry_at(&self.0.real(path.as_bytes(), true)?)
    }

    fn list(&self, path: &WorkspacePath) -> Result<Vec<Entry>, Error> {
        let at = self.0.real(path.as_bytes(), true)?;
        match self.0.node(&at) {
            Some(Node::Directory(_)) => {}
            Some(_) => return Err(Error::invalid(format!("`{path}` is not a directory")).with_path(path)),
            None => return Err(not_found(path.as_bytes())),
        }
        let directory = WorkspacePath::from_raw(&at)?;
        let mut entries = Vec::new();
        for name in self.0.names(&at) {
            let entry = self.0.entry_at(directory.join(&name)?.as_bytes())?;
            entries.extend(entry.map(|entry| Entry {
                path: path.join(&name).unwrap_or(entry.path),
                ..entry
            }));
        }
        Ok(entries)
    }

    fn read_link(&self, path: &WorkspacePath) -> Result<Vec<u8>, Error> {
        match self.0.node(&self.0.real(path.as_bytes(), false)?) {
            Some(Node::Symlink(target)) => Ok(target),
            Some(_) => Err(Error::invalid(format!("`{path}` is not a symlink")).with_path(path)),
            None => Err(not_found(path.as_bytes())),
        }
    }

    fn read(&self, path: &WorkspacePath, token: &CancelToken) -> Result<FileContent, Error> {
        token.check()?;
        let (entry, bytes) = self.file(path)?;
        let digest = Digest::of(&bytes);
        Ok(FileContent {
            entry,
            bytes: bytes.into(),
            digest,
        })
    }

    fn open(&self, path: &WorkspacePath) -> Result<Box<dyn Read + Send>, Error> {
        Ok(Box::new(Cursor::new(self.file(path)?.1)))
    }

    fn walk(
        &self,
        scope: &WalkScope,
        token: &CancelToken,
        visit: &(dyn Fn(Entry) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Skipped>, Error> {
        let start = self.0.real(scope.start.as_bytes(), false)?;
        let node = self.0.node(&start).ok_or_else(|| not_found(&start))?;
        if !matches!(node, Node::Directory(_)) {
            if let Some(entry) = self.0.entry_at(&start)? {
                // There is nothing more to visit, whatever the visitor says.
                let _ = visit(entry);
            }
            return Ok(Vec::new());
        }
        let mut open = vec![(start, 0)];
        while let Some((directory, depth)) = open.pop() {
            for name in self.0.names(&directory) {
                token.check()?;
                let path = WorkspacePath::from_raw(&directory)?.join(&name)?;
                let Some(entry) = self.0.entry_at(path.as_bytes())? else {
                    continue;
                };
                let is_directory = entry.kind == EntryKind::Directory;
                if name == b".git" || !scope.ignored && self.0.is_ignored(path.as_bytes(), is_directory) {
                    continue;
                }
                if is_directory && scope.depth.is_none_or(|most| depth + 1 < most) {
                    open.push((path.as_bytes().to_vec(), depth + 1));
                }
                if (!is_directory || scope.directories) && visit(entry).is_break() {
                    return Ok(Vec::new());
                }
            }
        }
        Ok(Vec::new())
    }

    fn freshness(&self) -> Freshness {
        Freshness::Present
    }
}
