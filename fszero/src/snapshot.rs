//! Snapshots: manifests of the tree as objects, and trees read from them.
//!
//! A manifest is an object like any other: `FZM1`, then postcard. Its digest is the snapshot's handle, so equal trees
//! have equal snapshots. Bytes of files are objects of their own.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;

use zero_contracts::find::{Freshness, Skipped};
use zero_contracts::source::{Entry, FileContent, WalkScope};
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, Handle, HandleKind, SourceView, WorkspacePath};

use crate::node::Node;
use crate::rules::{RULE_FILES, Rules};
use crate::store::Store;
use crate::tree::missing;
use crate::view::{entry_of_node, not_directory, outside};
use crate::walk::rule_text;

const MAGIC: &[u8; 4] = b"FZM1";

/// What a manifest holds, in the order of the paths.
pub(crate) type Manifest = Vec<(WorkspacePath, Node)>;

pub(crate) fn encode(entries: &Manifest) -> Result<Vec<u8>, Error> {
    let fail = |e| Error::new(ErrorKind::Internal, format!("a manifest does not encode: {e}"));
    postcard::to_extend(entries, MAGIC.to_vec()).map_err(fail)
}

/// Decodes a manifest; none if the bytes are not one.
pub(crate) fn decode(bytes: &[u8]) -> Option<Manifest> {
    postcard::from_bytes(bytes.strip_prefix(MAGIC)?).ok()
}

/// Reads the manifest that a handle names.
pub(crate) fn manifest(store: &Store, handle: &Handle) -> Result<Manifest, Error> {
    if handle.kind != HandleKind::Snapshot {
        return Err(Error::invalid(format!("{handle} is not a snapshot")).with_path(handle));
    }
    let bytes = store.get(&handle.digest).map_err(|e| e.with_path(handle))?;
    decode(&bytes)
        .ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("{handle} is not a manifest")).with_path(handle))
}

/// A snapshot as a tree. Directories that no entry names, but that hold one, are there with mode 0755.
pub(crate) struct SnapshotView {
    store: Arc<Store>,
    nodes: BTreeMap<WorkspacePath, Node>,
}

impl SnapshotView {
    pub fn new(store: Arc<Store>, manifest: Manifest) -> Self {
        let mut nodes: BTreeMap<WorkspacePath, Node> = manifest.into_iter().collect();
        let mut parents = Vec::new();
        for path in nodes.keys() {
            let mut at = path.parent();
            while let Some(parent) = at.filter(|parent| !nodes.contains_key(parent)) {
                at = parent.parent();
                parents.push(parent);
            }
        }
        nodes.extend(parents.into_iter().map(|path| (path, Node::Directory { mode: 0o755 })));
        nodes
            .entry(WorkspacePath::root())
            .or_insert(Node::Directory { mode: 0o755 });
        Self { store, nodes }
    }

    fn canonical(&self, path: &WorkspacePath, follow: bool) -> Result<WorkspacePath, Error> {
        let mut todo: Vec<Vec<u8>> = path.components().map(<[u8]>::to_vec).collect();
        todo.reverse();
        let mut at = WorkspacePath::root();
        let mut links = 0;
        while let Some(name) = todo.pop() {
            match &name[..] {
                b"" | b"." => continue,
                b".." => at = at.parent().ok_or_else(|| outside(path))?,
                _ => {
                    let next = at.join(&name)?;
                    match self.nodes.get(&next) {
                        Some(Node::Symlink { target }) if follow || !todo.is_empty() => {
                            links += 1;
                            if links > 40 || target.first() == Some(&b'/') {
                                return Err(outside(path));
                            }
                            todo.extend(target.split(|&b| b == b'/').rev().map(<[u8]>::to_vec));
                        }
                        _ => at = next,
                    }
                }
            }
        }
        Ok(at)
    }

    fn file(&self, path: &WorkspacePath) -> Result<(WorkspacePath, &Node, Digest), Error> {
        let at = self.canonical(path, true)?;
        match self.nodes.get(&at) {
            Some(node @ Node::File { digest, .. }) => {
                let digest = *digest;
                Ok((at, node, digest))
            }
            Some(node) => Err(Error::invalid(format!(
                "`{path}` is {}, not a regular file",
                Node::describe(Some(node))
            ))
            .with_path(path)),
            None => Err(missing(path)),
        }
    }

    fn inside(&self, directory: &WorkspacePath) -> impl Iterator<Item = (&WorkspacePath, &Node)> {
        let directory = directory.clone();
        let from = directory.clone();
        let all = self.nodes.range(from..);
        all.take_while({
            let directory = directory.clone();
            // Names such as `a-b` lie between `a` and `a/…`.
            move |(path, _)| path.as_bytes().starts_with(directory.as_bytes())
        })
        .filter(move |(path, _)| **path != directory && path.is_within(&directory))
    }
}

impl SourceView for SnapshotView {
    fn entry(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        let at = self.canonical(path, false)?;
        Ok(self.nodes.get(&at).map(|node| entry_of_node(path.clone(), node)))
    }

    fn resolve(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        let at = self.canonical(path, true)?;
        Ok(self.nodes.get(&at).map(|node| entry_of_node(at.clone(), node)))
    }

    fn list(&self, path: &WorkspacePath) -> Result<Vec<Entry>, Error> {
        let at = self.canonical(path, true)?;
        match self.nodes.get(&at) {
            Some(Node::Directory { .. }) => {}
            Some(_) => return Err(not_directory(path)),
            None => return Err(missing(path)),
        }
        let mut entries = Vec::new();
        for (child, node) in self
            .inside(&at)
            .filter(|(child, _)| child.parent().as_ref() == Some(&at))
        {
            entries.push(entry_of_node(path.join(child.file_name().unwrap_or_default())?, node));
        }
        Ok(entries)
    }

    fn read_link(&self, path: &WorkspacePath) -> Result<Vec<u8>, Error> {
        let at = self.canonical(path, false)?;
        match self.nodes.get(&at) {
            Some(Node::Symlink { target }) => Ok(target.clone()),
            Some(_) => Err(Error::invalid(format!("`{path}` is not a symlink")).with_path(path)),
            None => Err(missing(path)),
        }
    }

    fn read(&self, path: &WorkspacePath, token: &CancelToken) -> Result<FileContent, Error> {
        token.check()?;
        let (at, node, digest) = self.file(path)?;
        let bytes = self.store.get(&digest)?;
        Ok(FileContent {
            entry: entry_of_node(at, node),
            bytes: bytes.into(),
            digest,
        })
    }

    fn open(&self, path: &WorkspacePath) -> Result<Box<dyn Read + Send>, Error> {
        let (_, _, digest) = self.file(path)?;
        self.store.open(&digest)
    }

    fn walk(
        &self,
        scope: &WalkScope,
        token: &CancelToken,
        visit: &(dyn Fn(Entry) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Skipped>, Error> {
        let start = self.canonical(&scope.start, false)?;
        let node = self.nodes.get(&start).ok_or_else(|| missing(&scope.start))?;
        if !node.is_directory() {
            let _ = visit(entry_of_node(scope.start.clone(), node));
            return Ok(Vec::new());
        }
        let text = |path: Result<WorkspacePath, Error>| path.ok().and_then(|path| rule_text(self, &path, token));
        let exclude = text(WorkspacePath::from_raw(b".git/info/exclude"));
        // Paths come in an order in which a directory comes before what it holds.
        let mut rules: BTreeMap<WorkspacePath, Rules> = BTreeMap::new();
        let enter = |rules: &BTreeMap<WorkspacePath, Rules>, directory: &WorkspacePath| {
            let above = match directory.parent() {
                None => Some(Rules::root(exclude.as_deref())),
                Some(parent) => rules.get(&parent).cloned(),
            };
            above.map(|above| above.enter(directory, RULE_FILES.map(|name| text(directory.join(name)))))
        };
        let mut above = vec![start.clone()];
        while let Some(parent) = above.last().and_then(WorkspacePath::parent) {
            above.push(parent);
        }
        for directory in above.iter().rev() {
            if let Some(entered) = enter(&rules, directory) {
                rules.insert(directory.clone(), entered);
            }
        }
        let mut below: Vec<_> = self.inside(&start).collect();
        below.sort_by_key(|(path, _)| path.components().count());
        for (path, node) in below {
            token.check()?;
            if scope
                .depth
                .is_some_and(|most| path.components().count() > start.components().count() + most)
            {
                break; // They come by depth.
            }
            // A directory without rules was ignored, and so is what it holds.
            let Some(here) = path.parent().and_then(|parent| rules.get(&parent)) else {
                continue;
            };
            if path.file_name() == Some(b".git") || (!scope.ignored && here.ignores(path, node.is_directory())) {
                continue;
            }
            if node.is_directory()
                && let Some(entered) = enter(&rules, path)
            {
                rules.insert(path.clone(), entered);
            }
            if scope.directories || !node.is_directory() {
                let shown = if start == scope.start {
                    path.clone()
                } else {
                    crate::overlay::rebase(path, &start, &scope.start)
                };
                if visit(entry_of_node(shown, node)).is_break() {
                    break;
                }
            }
        }
        Ok(Vec::new())
    }

    fn freshness(&self) -> Freshness {
        Freshness::Present
    }
}
