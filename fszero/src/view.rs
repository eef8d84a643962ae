//! The tree as somebody sees it: the live tree under what a transaction has staged. The live view is the one under
//! nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::Dir;
use rustix::io::Errno;
use zero_contracts::find::{Freshness, Skipped};
use zero_contracts::read::EntryKind;
use zero_contracts::source::{Entry, FileContent, Stamp, WalkScope};
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, SourceView, WorkspacePath};

use crate::engine::Shared;
use crate::node::{Meta, Node};
use crate::overlay::{Body, Located, Overlay, Slot};
use crate::tree::{self, Tree, missing, os, stat_at};

/// A link is followed at most this often on one way, as in the kernel.
const LINKS: usize = 40;
/// Files up to this size are held in memory whole, on request.
const HELD_BYTES: u64 = 2 << 30;

#[derive(Clone)]
pub(crate) struct View {
    pub shared: Arc<Shared>,
    pub overlay: Overlay,
    /// Whether this is the live tree, where another cell's publication may show.
    pub live: bool,
}

pub(crate) fn stamp_of(digest: &Digest) -> Stamp {
    let mut half = [0; 16];
    half.copy_from_slice(&digest.as_bytes()[..16]);
    Stamp {
        value: u128::from_le_bytes(half),
        settled: true,
    }
}

fn entry_of(path: WorkspacePath, meta: &Meta) -> Entry {
    Entry {
        path,
        kind: meta.kind,
        bytes: meta.size,
        mode: meta.mode,
        stamp: meta.stamp(),
    }
}

pub(crate) fn entry_of_slot(path: WorkspacePath, slot: &Slot) -> Option<Entry> {
    let node = slot.node()?;
    Some(entry_of_node(path, &node))
}

pub(crate) fn entry_of_node(path: WorkspacePath, node: &Node) -> Entry {
    let bytes = match node {
        Node::File { bytes, .. } => *bytes,
        _ => 0,
    };
    let stamp = node.digest().map_or(
        Stamp {
            value: 0,
            settled: true,
        },
        |digest| stamp_of(&digest),
    );
    Entry {
        path,
        kind: node.kind(),
        bytes,
        mode: node.mode(),
        stamp,
    }
}

pub(crate) fn outside(path: &WorkspacePath) -> Error {
    Error::new(
        ErrorKind::OutsideWorkspace,
        format!("`{path}` leads out of the workspace through a symlink"),
    )
    .with_path(path)
}

impl View {
    /// Looks at a canonical path.
    pub fn look(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        match self.overlay.locate(path) {
            Located::Slot(slot) => Ok(entry_of_slot(path.clone(), slot)),
            Located::Nothing => Ok(None),
            Located::Carried(tree, origin) => {
                let meta = tree.stat(&origin).map_err(|e| os(e, "looking at", path))?;
                Ok(meta.map(|meta| entry_of(path.clone(), &meta)))
            }
            Located::Live(origin) => {
                let meta = self.shared.tree.stat(&origin).map_err(|e| os(e, "looking at", path))?;
                Ok(meta.map(|meta| entry_of(path.clone(), &meta)))
            }
        }
    }

    /// Reads the symlink at a canonical path.
    fn target(&self, path: &WorkspacePath) -> Result<Vec<u8>, Error> {
        let not_link = || Error::invalid(format!("`{path}` is not a symlink")).with_path(path);
        let read = |tree: &Tree, origin: &WorkspacePath| {
            tree.link(origin).map_err(|e| match e {
                Errno::INVAL => not_link(),
                Errno::NOENT | Errno::NOTDIR => missing(path),
                e => os(e, "reading", path),
            })
        };
        match self.overlay.locate(path) {
            Located::Slot(Slot::Symlink { target }) => Ok(target.to_vec()),
            Located::Slot(Slot::Absent) | Located::Nothing => Err(missing(path)),
            Located::Slot(_) => Err(not_link()),
            Located::Live(origin) => read(&self.shared.tree, &origin),
            Located::Carried(tree, origin) => read(tree, &origin),
        }
    }

    /// Turns a given path into a canonical one: symlinks on the way are followed, the last one if `follow`. What does
    /// not exist is left as it is.
    pub fn canonical(&self, path: &WorkspacePath, follow: bool) -> Result<WorkspacePath, Error> {
        if self.shared.is_own_path(path) {
            return Err(Error::new(ErrorKind::Denied, format!("`{path}` is the engine's own")).with_path(path));
        }
        if !self.overlay.has_symlinks() {
            // One look that fails on any symlink tells nearly always that there is none.
            match self.overlay.locate(path) {
                Located::Nothing | Located::Carried(..) => {}
                Located::Slot(_) => return Ok(path.clone()),
                Located::Live(origin) => match self.shared.tree.stat(&origin) {
                    Ok(Some(meta)) if !(follow && meta.kind == EntryKind::Symlink) => return Ok(path.clone()),
                    Ok(Some(_)) | Err(Errno::LOOP | Errno::XDEV) => {}
                    Ok(None) => return Ok(path.clone()),
                    Err(e) => return Err(os(e, "looking at", path)),
                },
            }
        }
        self.walk_links(path, follow)
    }

    fn walk_links(&self, path: &WorkspacePath, follow: bool) -> Result<WorkspacePath, Error> {
        let mut todo: Vec<Vec<u8>> = path.components().map(<[u8]>::to_vec).collect();
        todo.reverse();
        let mut at = WorkspacePath::root();
        let mut links = 0;
        while let Some(name) = todo.pop() {
            match &name[..] {
                b"" | b"." => continue,
                b".." => {
                    at = at.parent().ok_or_else(|| outside(path))?;
                    continue;
                }
                _ => {}
            }
            let next = at.join(&name)?;
            let is_link = self.look(&next)?.is_some_and(|entry| entry.kind == EntryKind::Symlink);
            if !is_link || (todo.is_empty() && !follow) {
                at = next;
                continue;
            }
            links += 1;
            if links > LINKS {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    format!("`{path}` has too many symlinks on its way"),
                )
                .with_path(path));
            }
            let mut target = &self.target(&next)?[..];
            if target.first() == Some(&b'/') {
                use std::os::unix::ffi::OsStrExt;
                let root = self.shared.tree.path().as_os_str().as_bytes();
                let inside = target
                    .strip_prefix(root)
                    .filter(|rest| rest.is_empty() || rest[0] == b'/');
                target = inside.ok_or_else(|| outside(path))?;
                at = WorkspacePath::root();
            }
            todo.extend(target.split(|&b| b == b'/').rev().map(<[u8]>::to_vec));
        }
        if self.shared.is_own_path(&at) {
            return Err(Error::new(ErrorKind::Denied, format!("`{at}` is the engine's own")).with_path(path));
        }
        Ok(at)
    }

    /// Opens the bytes of a staged file.
    pub fn open_body(&self, body: &Body, digest: &Digest) -> Result<Box<dyn Read + Send>, Error> {
        self.shared.open_body(body, digest)
    }

    fn open_live(&self, tree: &Tree, origin: &WorkspacePath, path: &WorkspacePath) -> Result<(File, Meta), Error> {
        tree.open_file(origin).map_err(|mut e| {
            e.path = Some(path.to_string());
            e
        })
    }

    /// The file a canonical path leads to, which must be regular.
    fn file_slot<'a>(&'a self, path: &WorkspacePath) -> Result<Located<'a>, Error> {
        match self.overlay.locate(path) {
            Located::Slot(Slot::Absent) | Located::Nothing => Err(missing(path)),
            Located::Slot(Slot::Directory { .. } | Slot::Carried { .. }) => {
                Err(Error::invalid(format!("`{path}` is a directory, not a regular file")).with_path(path))
            }
            Located::Slot(Slot::Symlink { .. }) => Err(missing(path)),
            other => Ok(other),
        }
    }

    /// The entries of the directory at a canonical path, by name.
    pub fn entries(&self, path: &WorkspacePath) -> Result<Vec<Entry>, Error> {
        let mut tree = &self.shared.tree;
        let origin = match self.overlay.locate(path) {
            Located::Live(origin) => Some(origin),
            Located::Carried(carried, origin) => {
                tree = carried;
                Some(origin)
            }
            Located::Slot(Slot::Carried { .. }) => {
                tree = self.overlay.carried_at(path).ok_or_else(|| missing(path))?;
                Some(path.clone())
            }
            Located::Slot(Slot::Directory { origin, .. }) => origin.clone(),
            Located::Nothing | Located::Slot(Slot::Absent) => return Err(missing(path)),
            Located::Slot(_) => return Err(not_directory(path)),
        };
        let mut entries = BTreeMap::new();
        if let Some(origin) = origin {
            let directory = tree.directory(&origin).map_err(|e| match e {
                Errno::NOTDIR => not_directory(path),
                e => os(e, "listing", path),
            })?;
            let fail = |e| os(e, "listing", path);
            for entry in Dir::read_from(&directory).map_err(fail)? {
                let entry = entry.map_err(fail)?;
                let name = entry.file_name().to_bytes();
                if matches!(name, b"." | b"..") || (origin.is_root() && self.shared.is_own(name)) {
                    continue;
                }
                if let Some(meta) = stat_at(directory.as_fd(), name).map_err(fail)? {
                    let child = path.join(name)?;
                    entries.insert(name.to_vec(), entry_of(child, &meta));
                }
            }
        }
        for (child, slot) in self.overlay.children(path) {
            let name = child.file_name().unwrap_or_default().to_vec();
            match entry_of_slot(child, &slot) {
                Some(entry) => entries.insert(name, entry),
                None => entries.remove(&name),
            };
        }
        Ok(entries.into_values().collect())
    }
}

pub(crate) fn not_directory(path: &WorkspacePath) -> Error {
    Error::invalid(format!("`{path}` is not a directory")).with_path(path)
}

impl SourceView for View {
    fn entry(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        let at = self.canonical(path, false)?;
        Ok(self.look(&at)?.map(|entry| Entry {
            path: path.clone(),
            ..entry
        }))
    }

    fn resolve(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        self.look(&self.canonical(path, true)?)
    }

    fn list(&self, path: &WorkspacePath) -> Result<Vec<Entry>, Error> {
        let at = self.canonical(path, true)?;
        let mut entries = self.entries(&at)?;
        if at != *path {
            for entry in &mut entries {
                entry.path = path.join(entry.path.file_name().unwrap_or_default())?;
            }
        }
        Ok(entries)
    }

    fn read_link(&self, path: &WorkspacePath) -> Result<Vec<u8>, Error> {
        self.target(&self.canonical(path, false)?)
    }

    fn read(&self, path: &WorkspacePath, token: &CancelToken) -> Result<FileContent, Error> {
        token.check()?;
        let at = self.canonical(path, true)?;
        let (tree, origin) = match self.file_slot(&at)? {
            Located::Live(origin) => (&self.shared.tree, origin),
            Located::Carried(tree, origin) => (&**tree, origin),
            Located::Slot(
                slot @ Slot::File {
                    digest, bytes, body, ..
                },
            ) => {
                let content: Arc<[u8]> = match body {
                    Body::Memory(content) => Arc::clone(content),
                    other => {
                        let mut content = room_for(*bytes, path)?;
                        let read = self.open_body(other, digest)?.read_to_end(&mut content);
                        read.map_err(|e| tree::io(&e, "reading", path))?;
                        if Digest::of(&content) != *digest {
                            return Err(tree::changing(path));
                        }
                        content.into()
                    }
                };
                let entry = entry_of_slot(at, slot).ok_or_else(|| missing(path))?;
                return Ok(FileContent {
                    entry,
                    bytes: content,
                    digest: *digest,
                });
            }
            _ => return Err(missing(path)),
        };
        for _ in 0..3 {
            token.check()?;
            let (mut file, before) = self.open_live(tree, &origin, path)?;
            let mut bytes = room_for(before.size, path)?;
            if before.size <= 1 << 20 {
                file.read_to_end(&mut bytes)
                    .map_err(|e| tree::io(&e, "reading", path))?;
            } else {
                read_checked(&mut file, &mut bytes, path, token)?;
            }
            let after = Meta::new(&rustix::fs::fstat(&file).map_err(|e| os(e, "reading", path))?);
            if after == before && bytes.len() as u64 == after.size {
                let digest = Digest::of(&bytes);
                return Ok(FileContent {
                    entry: entry_of(at, &after),
                    bytes: bytes.into(),
                    digest,
                });
            }
        }
        Err(tree::changing(path))
    }

    fn open(&self, path: &WorkspacePath) -> Result<Box<dyn Read + Send>, Error> {
        let at = self.canonical(path, true)?;
        match self.file_slot(&at)? {
            Located::Live(origin) => Ok(Box::new(self.open_live(&self.shared.tree, &origin, path)?.0)),
            Located::Carried(tree, origin) => Ok(Box::new(self.open_live(tree, &origin, path)?.0)),
            Located::Slot(Slot::File { digest, body, .. }) => self.open_body(body, digest),
            _ => Err(missing(path)),
        }
    }

    fn walk(
        &self,
        scope: &WalkScope,
        token: &CancelToken,
        visit: &(dyn Fn(Entry) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Skipped>, Error> {
        crate::walk::walk(self, scope, token, visit)
    }

    fn freshness(&self) -> Freshness {
        match self.live && self.shared.journal.has_open().unwrap_or(false) {
            true => Freshness::Uncommitted,
            false => Freshness::Present,
        }
    }
}

/// Room for the whole of a file, if there is any: a sparse file may claim more than every memory.
fn room_for(bytes: u64, path: &WorkspacePath) -> Result<Vec<u8>, Error> {
    let mut room = Vec::new();
    let wanted = usize::try_from(bytes).ok().filter(|_| bytes <= HELD_BYTES);
    if wanted.is_none_or(|bytes| room.try_reserve_exact(bytes + 1).is_err()) {
        return Err(Error::new(
            ErrorKind::Budget,
            format!("`{path}` has {bytes} bytes, more than are held in memory at once: read it in pieces"),
        )
        .with_path(path));
    }
    Ok(room)
}

fn read_checked(file: &mut File, bytes: &mut Vec<u8>, path: &WorkspacePath, token: &CancelToken) -> Result<(), Error> {
    loop {
        token.check()?;
        match file.take(4 << 20).read_to_end(bytes) {
            Ok(0) => return Ok(()),
            // What grows meanwhile is read again, or is a conflict.
            Ok(_) if bytes.len() as u64 > HELD_BYTES => return Ok(()),
            Ok(_) => {}
            Err(e) => return Err(tree::io(&e, "reading", path)),
        }
    }
}

impl Shared {
    /// Opens the bytes of a staged file.
    pub fn open_body(&self, body: &Body, digest: &Digest) -> Result<Box<dyn Read + Send>, Error> {
        match body {
            Body::Memory(content) => Ok(Box::new(Cursor::new(Arc::clone(content)))),
            Body::Object => self.store.open(digest),
            Body::Live(origin) => Ok(Box::new(self.tree.open_file(origin)?.0)),
        }
    }
}
