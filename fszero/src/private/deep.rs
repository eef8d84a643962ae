//! Trees as deep as a command cares to make them: room for walks that recurse, and a removal that does not.

use std::os::fd::{AsFd, BorrowedFd};

use zero_contracts::WorkspacePath;
use zero_contracts::read::EntryKind;

use super::{let_in, names, open_at};
use crate::engine::Shared;
use crate::seam::Rename;
use crate::tree::stat_at;

/// Bytes of stack for a walk that recurses: address space, not memory, until it is used.
const STACK: usize = 64 << 20;
/// No path that the kernel takes has more bytes, so none has more than half as many names.
const LONGEST_PATH: usize = 4096;

/// How deep a walk by descriptors goes, where no path bounds it.
pub(super) const DEEPEST: usize = LONGEST_PATH / 2;

/// Runs a walk whose depth is that of a tree, on a thread of its own that ends with it: the caller's stack may be small.
pub(super) fn with_room<T: Send>(walk: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("fszero-walk".into())
            .stack_size(STACK)
            .spawn_scoped(scope, walk)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Refuses a path below which nothing could be named.
pub(super) fn check_depth(path: &WorkspacePath) -> std::io::Result<()> {
    if path.as_bytes().len() > LONGEST_PATH {
        return Err(std::io::Error::from(rustix::io::Errno::NAMETOOLONG));
    }
    Ok(())
}

/// Removes an entry of the store's own, with all it holds, whatever its modes and however deep it is.
///
/// What lies two levels down is moved up one, so three descriptors are enough, and nothing recurses.
pub(super) fn clear(shared: &Shared, directory: BorrowedFd<'_>, name: &[u8]) -> std::io::Result<()> {
    let Some(meta) = stat_at(directory, name)? else {
        return Ok(());
    };
    if meta.kind != EntryKind::Directory {
        return shared.seam.unlink(directory, name);
    }
    let_in(shared, directory, name, &meta)?;
    let top = open_at(directory, name)?;
    let mut moved = 0_u64;
    loop {
        let found = names(top.as_fd())?;
        if found.is_empty() {
            return shared.seam.remove_directory(directory, name);
        }
        for name in found {
            flatten(shared, top.as_fd(), &name, &mut moved)?;
        }
    }
}

/// Removes one entry of `top`; the directories in it become entries of `top`.
fn flatten(shared: &Shared, top: BorrowedFd<'_>, name: &[u8], moved: &mut u64) -> std::io::Result<()> {
    let Some(meta) = stat_at(top, name)? else {
        return Ok(());
    };
    if meta.kind != EntryKind::Directory {
        return shared.seam.unlink(top, name);
    }
    let_in(shared, top, name, &meta)?;
    let inside = open_at(top, name)?;
    for name in names(inside.as_fd())? {
        let Some(meta) = stat_at(inside.as_fd(), &name)? else {
            continue;
        };
        if meta.kind != EntryKind::Directory {
            shared.seam.unlink(inside.as_fd(), &name)?;
            continue;
        }
        // A directory that moves has its `..` written, so it must be writable itself.
        let_in(shared, inside.as_fd(), &name, &meta)?;
        loop {
            let free = format!("{moved:x}");
            *moved += 1;
            match shared
                .seam
                .rename(inside.as_fd(), &name, top, free.as_bytes(), Rename::NoReplace)
            {
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                other => break other?,
            }
        }
    }
    shared.seam.remove_directory(top, name)
}
