//! What publication and restoration do with single entries: copying content in, keeping attributes, telling what an
//! entry of an open directory holds, keeping its bytes as an object.

use std::io::Read;
use std::os::fd::AsFd;

use rustix::io::Errno;
use zero_contracts::objects::ObjectWriter as _;
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, Handle, WorkspacePath};

use crate::engine::Shared;
use crate::node::Node;
use crate::overlay::Body;
use crate::store::INLINE_BYTES;
use crate::tree::{changing, io, os, stat_at};

impl Shared {
    /// Makes the mode of an entry durable.
    pub fn flush_mode(&self, path: &WorkspacePath) -> Result<(), Error> {
        if !self.power() {
            return Ok(());
        }
        // An O_PATH descriptor cannot be flushed, and who may change a mode need not be able to read.
        let flushed = match (self.tree.open_file(path), self.tree.directory(path)) {
            (Ok((file, _)), _) => self.seam.sync(file.as_fd()),
            (_, Ok(directory)) => self.seam.sync_directory(directory.as_fd()),
            _ => self.seam.sync_all(self.tree.root()),
        };
        flushed.map_err(|e| io(&e, "flushing", path))
    }

    /// Copies content into a new file, checking its digest.
    pub fn copy_body(
        &self,
        body: &Body,
        digest: &Digest,
        bytes: u64,
        into: std::os::fd::BorrowedFd<'_>,
        path: &WorkspacePath,
        token: &CancelToken,
    ) -> Result<(), Error> {
        let fail = |e: std::io::Error| io(&e, "writing", path);
        if let Body::Memory(content) = body {
            return self.seam.write(into, content).map_err(fail);
        }
        let mut source = self.open_body(body, digest)?;
        let mut hasher = zero_contracts::Hasher::new();
        let mut buffer = vec![0; bytes.clamp(1, 1 << 20) as usize];
        loop {
            token.check()?;
            let mut filled = 0;
            while filled < buffer.len() {
                match source.read(&mut buffer[filled..]) {
                    Ok(0) => break,
                    Ok(n) => filled += n,
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(crate::store::from_writer(e)),
                }
            }
            if filled == 0 {
                break;
            }
            hasher.update(&buffer[..filled]);
            self.seam.write(into, &buffer[..filled]).map_err(fail)?;
        }
        if hasher.finish() == *digest {
            Ok(())
        } else {
            Err(changing(path))
        }
    }

    /// Gives a new file the owner, access list and extended attributes of the one it replaces, or refuses.
    pub fn keep_attributes(
        &self,
        origin: &WorkspacePath,
        file: std::os::fd::BorrowedFd<'_>,
        path: &WorkspacePath,
    ) -> Result<(), Error> {
        let (old, meta) = self.tree.open_file(origin)?;
        let fail = |e: Errno| os(e, "looking at", path);
        let refused = |what: &str, e: &std::io::Error| {
            Error::new(
                ErrorKind::Denied,
                format!("`{path}` cannot be replaced without losing its {what}: {e}"),
            )
            .with_path(path)
        };
        let own = rustix::fs::fstat(file).map_err(fail)?;
        if (own.st_uid, own.st_gid) != (meta.uid, meta.gid) {
            self.seam
                .chown(file, meta.uid, meta.gid)
                .map_err(|e| refused("owner", &e))?;
        }
        let names = |fd: std::os::fd::BorrowedFd<'_>| -> Result<Vec<Vec<u8>>, Errno> {
            let mut list = Vec::with_capacity(64 * 1024);
            match rustix::fs::flistxattr(fd, rustix::buffer::spare_capacity(&mut list)) {
                Ok(_) => Ok(list
                    .split(|&b| b == 0)
                    .filter(|name| !name.is_empty())
                    .map(<[u8]>::to_vec)
                    .collect()),
                Err(Errno::NOTSUP) => Ok(Vec::new()),
                Err(e) => Err(e),
            }
        };
        let wanted = names(old.as_fd()).map_err(fail)?;
        for name in names(file).map_err(fail)? {
            // A label that the system gives every new file is no attribute to take away.
            if !wanted.contains(&name) && !name.starts_with(b"security.") {
                self.seam
                    .remove_xattr(file, &name)
                    .map_err(|e| refused("attributes", &e))?;
            }
        }
        for name in wanted {
            let mut value = Vec::with_capacity(64 * 1024);
            rustix::fs::fgetxattr(&old, &name[..], rustix::buffer::spare_capacity(&mut value)).map_err(fail)?;
            let mut own = Vec::with_capacity(64 * 1024);
            if rustix::fs::fgetxattr(file, &name[..], rustix::buffer::spare_capacity(&mut own)).is_ok() && own == value
            {
                continue;
            }
            self.seam
                .set_xattr(file, &name, &value)
                .map_err(|e| refused(&format!("attribute {}", String::from_utf8_lossy(&name)), &e))?;
        }
        Ok(())
    }

    /// What an entry of an open directory holds. With `keep`, the bytes of a large file become an object.
    pub fn node_at(
        &self,
        directory: std::os::fd::BorrowedFd<'_>,
        name: &[u8],
        path: &WorkspacePath,
        keep: bool,
        token: &CancelToken,
    ) -> Result<Option<Node>, Error> {
        use rustix::fs::{Mode, OFlags, openat};
        use zero_contracts::read::EntryKind;
        let fail = |e: Errno| os(e, "reading", path);
        let Some(meta) = stat_at(directory, name).map_err(fail)? else {
            return Ok(None);
        };
        Ok(Some(match meta.kind {
            EntryKind::Directory => Node::Directory { mode: meta.mode },
            EntryKind::Symlink => Node::Symlink {
                target: crate::tree::link_at(directory, name).map_err(fail)?,
            },
            EntryKind::Other => Node::Other,
            EntryKind::File => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
                let mut file = match openat(directory, name, flags, Mode::empty()) {
                    Ok(file) => std::fs::File::from(file),
                    Err(Errno::ACCESS) => return Ok(Some(meta.unreadable())),
                    Err(e) => return Err(fail(e)),
                };
                if keep && meta.size > INLINE_BYTES {
                    let mut writer = self.store.writer_of()?;
                    crate::text::splice(&[], &mut file, &mut writer, token)?;
                    let (digest, bytes) = Box::new(writer).finish()?;
                    Node::File {
                        mode: meta.mode,
                        digest,
                        bytes,
                    }
                } else {
                    let (digest, bytes) = crate::tree::digest_of(&mut file, path, token)?;
                    Node::File {
                        mode: meta.mode,
                        digest,
                        bytes,
                    }
                }
            }
        }))
    }

    /// Stores the bytes of a file, so that a handle of them can be given.
    pub fn keep_file(
        &self,
        directory: std::os::fd::BorrowedFd<'_>,
        name: &[u8],
        path: &WorkspacePath,
    ) -> Result<Digest, Error> {
        use rustix::fs::{Mode, OFlags, openat};
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(directory, name, flags, Mode::empty()).map_err(|e| os(e, "reading", path))?;
        let mut writer = self.store.writer_of()?;
        crate::text::splice(&[], &mut std::fs::File::from(file), &mut writer, &CancelToken::new())?;
        Ok(Box::new(writer).finish()?.0)
    }

    /// Stores the bytes of the live file at a canonical path, if one is there.
    pub fn keep_live(&self, path: &WorkspacePath) -> Option<Handle> {
        let (mut file, _) = self.tree.open_file(path).ok()?;
        let mut writer = self.store.writer_of().ok()?;
        crate::text::splice(&[], &mut file, &mut writer, &CancelToken::new()).ok()?;
        Some(Handle::blob(Box::new(writer).finish().ok()?.0))
    }

    pub fn is_empty_directory(
        &self,
        directory: std::os::fd::BorrowedFd<'_>,
        name: &[u8],
        path: &WorkspacePath,
    ) -> Result<bool, Error> {
        use rustix::fs::{Dir, Mode, OFlags, openat};
        let fail = |e: Errno| os(e, "listing", path);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(directory, name, flags, Mode::empty()).map_err(fail)?;
        for entry in Dir::read_from(&opened).map_err(fail)? {
            if !matches!(entry.map_err(fail)?.file_name().to_bytes(), b"." | b"..") {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
