//! The private view of a workspace: an overlay mounted over it for the command alone.
//!
//! The command sees the workspace at its own path; what it writes lands in the upper directory, and the live tree stays as
//! it is. Directories that are passed through (caches, build output) are bound from the live tree on top. The supervisor
//! enters the view before it starts the command. The mounts live in a mount namespace of their own (an ordinary user's in
//! a user namespace), which commands of the same cell that start meanwhile join, and end with the last process in it and
//! the last descriptor of it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags, open, openat};
use rustix::mount::{MountFlags, mount, mount_bind_recursive};

use super::namespace;
use crate::protocol::View;
use crate::sys;

/// Moves the calling process into the view: mounts it, or joins the namespaces in which it is mounted. Returns the
/// namespaces made here: the mount namespace, and an ordinary user's user namespace.
///
/// # Errors
/// What the kernel refuses: no user namespaces, no overlay, a file system that cannot be an upper layer.
pub(super) fn enter(view: &View, namespaces: Vec<OwnedFd>) -> io::Result<Vec<OwnedFd>> {
    let (root, upper, work, through) = match view {
        View::Live => return Ok(Vec::new()),
        View::Mounted { .. } => {
            // The user namespace comes last, and gives the right to enter the other.
            for namespace in namespaces.iter().rev() {
                sys::join_namespace(namespace.as_fd())?;
            }
            return Ok(Vec::new());
        }
        View::Overlay {
            root,
            upper,
            work,
            through,
        } => (root, upper, work, through),
    };
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let own = if user == 0 { 0 } else { libc::CLONE_NEWUSER };
    sys::unshare(libc::CLONE_NEWNS | own)?;
    if user != 0 {
        namespace::map_user(user, group).map_err(|(_, error)| error)?;
    }
    namespace::separate_mounts()?;
    let directory = |path: &Vec<u8>| open(path.as_slice(), DIRECTORY, Mode::empty());
    let (lower, above, scratch) = (directory(root)?, directory(upper)?, directory(work)?);
    // Opened before they are covered.
    let mut live: Vec<(PathBuf, OwnedFd)> = Vec::with_capacity(through.len());
    for path in through {
        match openat(
            &lower,
            path.as_slice(),
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        ) {
            Ok(fd) => live.push((place(root).join(place(path)), fd)),
            // What is not there cannot be passed through.
            Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Nothing in the layers has to outlive a crash, so the kernel need not flush them.
    // Named by descriptor: commas, colons and backslashes in a path have a meaning in mount options.
    let data = format!(
        "lowerdir={},upperdir={},workdir={},userxattr,volatile",
        link(&lower),
        link(&above),
        link(&scratch)
    );
    let data = std::ffi::CString::new(data).map_err(io::Error::other)?;
    mount(
        "overlay",
        root.as_slice(),
        "overlay",
        MountFlags::empty(),
        Some(data.as_c_str()),
    )?;
    for (target, fd) in &live {
        mount_bind_recursive(link(fd), target.as_path())?;
    }
    let namespace = |name: &str| open(name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let mut made = vec![namespace("/proc/self/ns/mnt")?];
    if user != 0 {
        made.push(namespace("/proc/self/ns/user")?);
    }
    Ok(made)
}

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn link(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

fn place(path: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(path.to_vec()))
}
