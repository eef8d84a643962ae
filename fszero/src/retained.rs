//! Objects of git that were there before a command: kept by a second name in the store.
//!
//! Git never changes such a file, so a hard link is as good as a copy; where the store lies on another file system it is
//! a copy. Whatever a repack then removes can be put back as it was. The links stay from command to command, so that only
//! new objects cost something; those of files that are gone go when the next transaction begins to capture. They are no
//! objects of the store: their bytes are not named by digest, and nobody reads them but restoration.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags, openat};
use rustix::io::Errno;
use zero_contracts::{CancelToken, Digest, Error, WorkspacePath};

use crate::engine::Shared;
use crate::node::{Meta, Node};
use crate::overlay::Body;
use crate::tree::{io, os, stat_at};

/// Larger objects are not copied to a store on another file system: their loss is reported instead.
const COPIED: u64 = 256 << 20;

/// Tells whether a path is an object of git that is written once and named by its content: a loose one, or a pack and
/// what belongs to it.
pub(crate) fn is_git_object(path: &WorkspacePath) -> bool {
    let mut names = path.components();
    while let Some(name) = names.next() {
        if name == b".git" {
            let rest: Vec<&[u8]> = names.collect();
            let hex = |name: &[u8]| name.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            return match rest[..] {
                [b"objects", b"pack", file] => {
                    file.starts_with(b"pack-")
                        && [&b".pack"[..], b".idx", b".rev"].iter().any(|end| file.ends_with(end))
                }
                [b"objects", fan, file] => fan.len() == 2 && hex(fan) && file.len() >= 38 && hex(file),
                _ => false,
            };
        }
    }
    false
}

/// An object of git as a manifest records it: by name and size.
pub(crate) fn node(path: &WorkspacePath, meta: &Meta) -> Node {
    Node::File {
        mode: meta.mode,
        digest: Digest::of(path.as_bytes()),
        bytes: meta.size,
    }
}

fn name(path: &WorkspacePath, bytes: u64) -> Vec<u8> {
    let known = [path.as_bytes(), b"\0", &bytes.to_le_bytes()].concat();
    Digest::of(&known).to_hex().into_bytes()
}

fn directory(shared: &Shared) -> Result<OwnedFd, Error> {
    const NAME: &[u8] = b"retained";
    let fail = |e: std::io::Error| io(&e, "opening what is retained of", &WorkspacePath::root());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let store = shared.store.directory().as_fd();
    match openat(store, NAME, flags, Mode::empty()) {
        Err(Errno::NOENT) => {
            match shared.seam.make_directory(store, NAME, 0o700) {
                Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(fail(e)),
                _ => {}
            }
            openat(store, NAME, flags, Mode::empty()).map_err(|e| fail(e.into()))
        }
        other => other.map_err(|e| fail(e.into())),
    }
}

/// Retains every object of git in a manifest. With `tidy`, what is retained of objects that are gone goes: no open
/// transaction may need it.
pub(crate) fn retain(
    shared: &Shared,
    tracked: &[(WorkspacePath, Node)],
    tidy: bool,
    token: &CancelToken,
) -> Result<(), Error> {
    let objects: Vec<_> = tracked.iter().filter(|(path, _)| is_git_object(path)).collect();
    if objects.is_empty() && stat_at(shared.store.directory().as_fd(), b"retained").is_ok_and(|found| found.is_none()) {
        return Ok(());
    }
    let retained = directory(shared)?;
    let mut known: HashMap<Vec<u8>, u64> = HashMap::new();
    let fail = |e: Errno| os(e, "listing what is retained of", &WorkspacePath::root());
    for entry in Dir::read_from(&retained).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            known.insert(name.to_vec(), entry.ino());
        }
    }
    let same_device = match (rustix::fs::fstat(&retained), rustix::fs::fstat(shared.tree.root())) {
        (Ok(ours), Ok(theirs)) => ours.st_dev == theirs.st_dev,
        _ => false,
    };
    let mut wanted = HashSet::new();
    let mut made = false;
    for (path, node) in objects {
        token.check()?;
        let Node::File { bytes, .. } = node else { continue };
        let name = name(path, *bytes);
        if let Some(inode) = known.get(&name) {
            let live = if same_device {
                shared.tree.stat(path).ok().flatten()
            } else {
                None
            };
            if live.is_none_or(|live| live.inode == *inode) {
                wanted.insert(name);
                continue;
            }
            // Somebody else's file under that name and with that size.
            let _ = shared.seam.unlink(retained.as_fd(), &name);
        }
        made |= keep(shared, path, *bytes, retained.as_fd(), &name, token)?;
        wanted.insert(name);
    }
    if tidy {
        for gone in known.keys().filter(|name| !wanted.contains(*name)) {
            // What cannot be removed only takes room.
            let _ = shared.seam.unlink(retained.as_fd(), gone);
        }
    }
    if made && shared.power() {
        let synced = shared.seam.sync_directory(retained.as_fd());
        synced.map_err(|e| io(&e, "flushing what is retained of", &WorkspacePath::root()))?;
    }
    Ok(())
}

/// Gives one live file its second name; false if it cannot have one.
fn keep(
    shared: &Shared,
    path: &WorkspacePath,
    bytes: u64,
    retained: BorrowedFd<'_>,
    name: &[u8],
    token: &CancelToken,
) -> Result<bool, Error> {
    let (Some(parent), Some(file)) = (path.parent(), path.file_name()) else {
        return Ok(false);
    };
    let Ok(parent) = shared.tree.directory(&parent) else {
        return Ok(false);
    };
    match shared.seam.link(parent.as_fd(), file, retained, name) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(true),
        // Another file system, one without links, or a file of somebody else.
        Err(_) if bytes <= COPIED => {
            let copied = copy(shared, path, bytes, retained, name, token);
            if copied.is_err() {
                let _ = shared.seam.unlink(retained, name);
                token.check()?;
            }
            Ok(copied.is_ok())
        }
        Err(_) => Ok(false),
    }
}

fn copy(
    shared: &Shared,
    path: &WorkspacePath,
    bytes: u64,
    retained: BorrowedFd<'_>,
    name: &[u8],
    token: &CancelToken,
) -> Result<(), Error> {
    let (mut source, _) = shared.tree.open_file(path)?;
    let (digest, _) = crate::tree::digest_of(&mut source, path, token)?;
    let file = shared
        .seam
        .create(retained, name, 0o600)
        .map_err(|e| io(&e, "retaining", path))?;
    let body = Body::Live(path.clone());
    shared.copy_body(&body, &digest, bytes, file.as_fd(), path, token)?;
    if shared.power() {
        shared.seam.sync(file.as_fd()).map_err(|e| io(&e, "retaining", path))?;
    }
    Ok(())
}

/// Tells whether a lost object can be put back.
pub(crate) fn holds(shared: &Shared, path: &WorkspacePath, bytes: u64) -> bool {
    directory(shared).is_ok_and(|retained| {
        stat_at(retained.as_fd(), &name(path, bytes)).is_ok_and(|found| found.is_some_and(|meta| meta.size == bytes))
    })
}

/// Puts a retained object at a new name, with its mode; false if it is not retained.
pub(crate) fn give_back(
    shared: &Shared,
    path: &WorkspacePath,
    node: &Node,
    into: BorrowedFd<'_>,
    temp: &[u8],
) -> Result<bool, Error> {
    let Node::File { mode, bytes, .. } = node else {
        return Ok(false);
    };
    if !holds(shared, path, *bytes) {
        return Ok(false);
    }
    let fail = |e: std::io::Error| io(&e, "restoring", path);
    let retained = directory(shared)?;
    let name = name(path, *bytes);
    if shared.seam.link(retained.as_fd(), &name, into, temp).is_ok() {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let linked = openat(into, temp, flags, Mode::empty()).map_err(|e| fail(e.into()))?;
        let stat = rustix::fs::fstat(&linked).map_err(|e| fail(e.into()))?;
        if stat.st_mode & 0o7777 != *mode {
            shared.seam.chmod(linked.as_fd(), *mode).map_err(fail)?;
        }
        return Ok(true);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let source = openat(&retained, &name[..], flags, Mode::empty()).map_err(|e| fail(e.into()))?;
    let file = shared.seam.create(into, temp, 0o600).map_err(fail)?;
    let mut source = std::fs::File::from(source);
    let mut piece = vec![0; 1 << 20];
    loop {
        match std::io::Read::read(&mut source, &mut piece).map_err(fail)? {
            0 => break,
            count => shared.seam.write(file.as_fd(), &piece[..count]).map_err(fail)?,
        }
    }
    shared.seam.chmod(file.as_fd(), *mode).map_err(fail)?;
    if shared.power() {
        shared.seam.sync(file.as_fd()).map_err(fail)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_by_its_content_counts() {
        let object = |text: &str| is_git_object(&text.parse().unwrap());
        let hash = "0123456789abcdef0123456789abcdef012345";
        assert!(object(&format!(".git/objects/ab/{hash}")) && object(&format!("sub/.git/objects/ab/{hash}")));
        for end in ["pack", "idx", "rev"] {
            assert!(object(&format!(".git/objects/pack/pack-{hash}.{end}")));
        }
        for other in ["pack/multi-pack-index", "pack/tmp_pack_a", "info/packs", "ab/tmp_obj_x"] {
            assert!(!object(&format!(".git/objects/{other}")), "{other}");
        }
        assert!(!object(&format!("objects/ab/{hash}")) && !object(".git/index"));
    }
}
