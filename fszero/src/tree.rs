//! The live tree: reading system calls beneath the root's descriptor.
//!
//! Paths here are *canonical*: no component but the last may be a symlink, and the kernel refuses (`RESOLVE_NO_SYMLINKS`)
//! if one has become so. [`resolve`](crate::resolve) turns a given path into a canonical one. Nothing is ever opened by a
//! path that was joined to the root's name, so a symlink that is swapped in cannot lead out. This module changes nothing.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use zero_contracts::read::EntryKind;
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, Hasher, WorkspacePath};

use crate::node::{Meta, Node};

/// The staging directory of a batch is named so, directly under the root, with the batch's tag behind it.
pub(crate) const STAGING_PREFIX: &[u8] = b".fszero-";

/// Ends the name of a staging directory that nothing depends on: not yet complete, or everything is back.
pub(crate) const IDLE_SUFFIX: &[u8] = b"-idle";

/// The tag of a name that a staging directory may have.
pub(crate) fn staging_tag(name: &[u8]) -> Option<u64> {
    let rest = name.strip_prefix(STAGING_PREFIX)?;
    let hex = rest.strip_suffix(IDLE_SUFFIX).unwrap_or(rest);
    let digits = hex.len() == 16 && hex.iter().all(u8::is_ascii_hexdigit);
    u64::from_str_radix(std::str::from_utf8(hex).ok().filter(|_| digits)?, 16).ok()
}

/// The root as a capability.
#[derive(Debug)]
pub(crate) struct Tree {
    root: OwnedFd,
    path: PathBuf,
}

/// Wraps an error of the operating system, naming the path.
pub(crate) fn os(errno: Errno, what: &str, path: &WorkspacePath) -> Error {
    io(&errno.into(), what, path)
}

/// Wraps an error of the operating system, naming the path.
pub(crate) fn io(error: &std::io::Error, what: &str, path: &WorkspacePath) -> Error {
    let wrapped = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::XDEV) => Error::new(
            ErrorKind::OutsideWorkspace,
            format!("{what} `{path}`: it leads out of the workspace"),
        ),
        Some(Errno::LOOP) => Error::new(
            ErrorKind::Conflict,
            format!("{what} `{path}`: a directory on the way is a symlink now; read again and retry"),
        )
        .retryable(true),
        Some(Errno::NOTDIR) => Error::new(
            ErrorKind::NotFound,
            format!("{what} `{path}`: a parent is not a directory"),
        ),
        _ => Error::from_io(error, format!("{what} `{path}`")),
    };
    wrapped.with_path(path)
}

impl Tree {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let fail = |e: std::io::Error| Error::from_io(&e, format!("opening the root {}", path.display()));
        let path = std::fs::canonicalize(path).map_err(fail)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = fs::open(&path, flags, Mode::empty()).map_err(|e| fail(e.into()))?;
        Ok(Self { root, path })
    }

    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// The root's name, for messages and for recognising absolute targets; never opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open2(&self, path: &WorkspacePath, flags: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        let resolve = resolve | ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            match fs::openat2(&self.root, path.as_os_str(), flags, Mode::empty(), resolve) {
                // A rename somewhere in the tree disturbed the walk: the kernel asks to try again.
                Err(Errno::AGAIN | Errno::INTR) if tries < 100 => tries += 1,
                other => return other,
            }
        }
    }

    /// Opens a directory by its canonical path.
    pub fn directory(&self, path: &WorkspacePath) -> Result<OwnedFd, Errno> {
        self.open2(path, OFlags::RDONLY | OFlags::DIRECTORY, ResolveFlags::NO_SYMLINKS)
    }

    /// `lstat` by a canonical path; none if nothing is there. `ELOOP` if a parent is a symlink. (With `O_PATH` and
    /// `O_NOFOLLOW` a final symlink is opened itself in spite of `RESOLVE_NO_SYMLINKS`: openat2(2).)
    pub fn stat(&self, path: &WorkspacePath) -> Result<Option<Meta>, Errno> {
        match self.open2(path, OFlags::PATH | OFlags::NOFOLLOW, ResolveFlags::NO_SYMLINKS) {
            Ok(fd) => fs::fstat(&fd).map(|stat| Some(Meta::new(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Reads a symlink by its canonical path.
    pub fn link(&self, path: &WorkspacePath) -> Result<Vec<u8>, Errno> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL);
        };
        let parent = self.open2(&parent, OFlags::PATH | OFlags::DIRECTORY, ResolveFlags::NO_SYMLINKS)?;
        link_at(parent.as_fd(), name)
    }

    /// Opens a regular file by a canonical path. FIFOs, sockets and devices are refused unopened.
    pub fn open_file(&self, path: &WorkspacePath) -> Result<(File, Meta), Error> {
        let fail = |e| os(e, "opening", path);
        let meta = self.stat(path).map_err(fail)?.ok_or_else(|| missing(path))?;
        check_file(&meta, path)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
        let file = self.open2(path, flags, ResolveFlags::NO_SYMLINKS).map_err(fail)?;
        let meta = Meta::new(&fs::fstat(&file).map_err(fail)?);
        check_file(&meta, path)?;
        Ok((File::from(file), meta))
    }

    /// Opens any entry for its attributes only.
    pub fn handle(&self, path: &WorkspacePath) -> Result<OwnedFd, Errno> {
        self.open2(path, OFlags::PATH | OFlags::NOFOLLOW, ResolveFlags::NO_SYMLINKS)
    }

    /// Reads what a canonical path holds, with the digest of a file's bytes.
    pub fn node(&self, path: &WorkspacePath, token: &CancelToken) -> Result<Option<(Node, Meta)>, Error> {
        let fail = |e| os(e, "reading", path);
        for _ in 0..3 {
            let Some(meta) = self.stat(path).map_err(fail)? else {
                return Ok(None);
            };
            let node = match meta.kind {
                EntryKind::Directory => Node::Directory { mode: meta.mode },
                EntryKind::Symlink => match self.link(path) {
                    Ok(target) => Node::Symlink { target },
                    Err(Errno::NOENT | Errno::INVAL) => continue,
                    Err(e) => return Err(fail(e)),
                },
                EntryKind::Other => Node::Other,
                EntryKind::File => {
                    let (mut file, meta) = match self.open_file(path) {
                        Err(e) if e.kind == ErrorKind::NotFound => continue,
                        other => other?,
                    };
                    let (digest, bytes) = digest_of(&mut file, path, token)?;
                    let after = Meta::new(&fs::fstat(&file).map_err(fail)?);
                    if after != meta || bytes != meta.size {
                        continue;
                    }
                    return Ok(Some((
                        Node::File {
                            mode: meta.mode,
                            digest,
                            bytes,
                        },
                        meta,
                    )));
                }
            };
            return Ok(Some((node, meta)));
        }
        Err(changing(path))
    }
}

/// `fstatat` without following; none if nothing is there.
pub(crate) fn stat_at(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Meta>, Errno> {
    match fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(Meta::new(&stat))),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(e) => Err(e),
    }
}

pub(crate) fn link_at(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Vec<u8>, Errno> {
    fs::readlinkat(dir, name, Vec::new()).map(std::ffi::CString::into_bytes)
}

/// Reads to the end for the digest only.
pub(crate) fn digest_of(file: &mut File, path: &WorkspacePath, token: &CancelToken) -> Result<(Digest, u64), Error> {
    let mut hasher = Hasher::new();
    let mut total = 0;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((hasher.finish(), total)),
            Ok(n) => {
                hasher.update(&buffer[..n]);
                total += n as u64;
                if total > 1 << 20 && buffer.len() < 1 << 20 {
                    buffer.resize(1 << 20, 0);
                }
                token.check()?;
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(io(&e, "reading", path)),
        }
    }
}

pub(crate) fn check_file(meta: &Meta, path: &WorkspacePath) -> Result<(), Error> {
    let what = match meta.kind {
        EntryKind::File => return Ok(()),
        EntryKind::Directory => "a directory",
        EntryKind::Symlink => "a symlink",
        EntryKind::Other => "a FIFO, socket or device, which is never opened",
    };
    Err(Error::invalid(format!("`{path}` is {what}, not a regular file")).with_path(path))
}

pub(crate) fn missing(path: &WorkspacePath) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no `{path}`")).with_path(path)
}

pub(crate) fn changing(path: &WorkspacePath) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!("`{path}` keeps changing while it is read; try again"),
    )
    .with_path(path)
    .retryable(true)
}
