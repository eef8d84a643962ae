//! The PID namespace of a tree and its first process.
//!
//! That process, *init*, is a fork of the supervisor: it mounts a `/proc` of the namespace, starts the root, reaps orphans
//! and reports how the root ended. The kernel kills the whole namespace with it, atomically against forks; it dies with
//! the supervisor (a parent-death signal is sound here, since the supervisor has one thread) and cannot be killed from
//! within. An ordinary user gets a user namespace too, in which it keeps its own user and group.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use serde::{Deserialize, Serialize};

use super::launch::{Child, Gate, become_command};
use crate::identity::{Identity, Stat, each_within};
use crate::protocol::{self, RootStatus};
use crate::sys::{self, Fork, Reaped};

/// What init says to the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromInit {
    /// The root waits at its gate; beside it comes a descriptor of the namespace's `/proc`.
    Ready {
        /// The root's number as the supervisor sees it.
        root: i32,
        /// Whether the kernel enforces the number of tasks.
        counted: bool,
    },
    /// The namespace could not be set up.
    Failed(String),
    /// The root ended.
    RootEnded {
        /// How.
        status: RootStatus,
        /// Nobody else is left: init ends too.
        alone: bool,
    },
}

/// A launched namespace.
pub(super) struct Namespace {
    pub(super) init: Identity,
    pub(super) root: Identity,
    /// Where init reports.
    pub(super) channel: OwnedFd,
    /// The namespace's `/proc`.
    pub(super) procs: OwnedFd,
    pub(super) counted: bool,
}

impl Namespace {
    /// Calls `each` with every process in it but init, in the namespace's own numbering.
    pub(super) fn each(&self, mut each: impl FnMut(&Stat)) {
        each_within(self.procs.as_fd(), |stat| {
            if stat.identity.pid != 1 {
                each(&stat);
            }
        });
    }

    /// One process of it, by its number in the namespace.
    pub(super) fn stat(&self, pid: i32) -> Option<Stat> {
        Stat::within(self.procs.as_fd(), pid)
    }
}

/// Makes the namespace and starts a root that waits at the gate.
///
/// # Errors
/// When namespaces are not permitted here; nothing is left over then.
pub(super) fn launch(mut child: Child<'_>, gate: Gate) -> io::Result<(Namespace, OwnedFd, OwnedFd)> {
    let (channel, theirs) = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let mapped = user != 0;
    let namespaces = libc::CLONE_NEWPID | libc::CLONE_NEWNS | if mapped { libc::CLONE_NEWUSER } else { 0 };
    if mapped {
        // Counted apart for a user in a user namespace of its own; one more for init.
        child.tasks = Some(u64::from(child.start.processes) + 1);
    }
    let pid = match sys::fork_into(namespaces)? {
        Fork::Child => init(&child, gate, channel, theirs, mapped.then_some((user, group))),
        Fork::Parent(pid) => pid,
    };
    drop(theirs);
    let Gate {
        go: (_, opener),
        status: (reader, _),
    } = gate;
    let ready = protocol::receive::<FromInit>(channel.as_fd());
    let init = Identity::of(pid);
    let failed = |why: String| {
        sys::signal_child(pid, libc::SIGKILL);
        // Init is a child that was just killed.
        let _ = sys::reap(pid, true);
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    };
    match (ready, init) {
        (Ok((FromInit::Ready { root, counted }, mut fds)), Some(init)) if fds.len() == 1 => {
            match (Identity::of(root), fds.pop()) {
                (Some(root), Some(procs)) => Ok((
                    Namespace {
                        init,
                        root,
                        channel,
                        procs,
                        counted: counted || mapped,
                    },
                    opener,
                    reader,
                )),
                _ => failed("the root of the namespace is gone".into()),
            }
        }
        (Ok((FromInit::Failed(why), _)), _) => failed(why),
        _ => failed("the namespace's first process ended early".into()),
    }
}

/// The first process of the namespace. Never returns.
fn init(child: &Child<'_>, gate: Gate, theirs: OwnedFd, channel: OwnedFd, map: Option<(u32, u32)>) -> ! {
    drop(theirs);
    let _ = sys::die_with_parent(libc::SIGKILL);
    sys::set_name(c"zero-init");
    let set = set_up(map, child.start.processes);
    let (outer, procs, counted) = match set {
        Ok(set) => set,
        Err((what, error)) => {
            let why = format!("{what}: {error}");
            let _ = protocol::send(channel.as_fd(), &FromInit::Failed(why), &[]);
            sys::exit(1)
        }
    };
    let root = match sys::fork() {
        Ok(Fork::Child) => {
            // In the outer /proc, "self" is the number the supervisor knows.
            let number = rustix::fs::readlinkat(&outer, "self", Vec::new())
                .ok()
                .and_then(|text| text.to_str().ok()?.parse().ok());
            let said = number.and_then(|root| {
                let ready = FromInit::Ready { root, counted };
                protocol::send(channel.as_fd(), &ready, &[procs.as_fd()]).ok()
            });
            if said.is_none() {
                sys::exit(1);
            }
            drop((channel, outer, procs));
            become_command(child, gate)
        }
        Ok(Fork::Parent(pid)) => pid,
        Err(error) => {
            let _ = protocol::send(channel.as_fd(), &FromInit::Failed(format!("cannot fork: {error}")), &[]);
            sys::exit(1)
        }
    };
    // Keep nothing of the command's, the host's or the lease's descriptors.
    if sys::duplicate_onto(channel.as_raw_fd(), 0).is_err() {
        sys::exit(1);
    }
    // SAFETY: this process never drops the owners: it ends in exit. Number 0 is the channel from here on.
    let channel = unsafe {
        std::mem::forget((gate, outer, procs, channel));
        sys::close_from(3);
        sys::adopt(0)
    };
    loop {
        let status = match sys::reap(-1, true) {
            Ok(Reaped::Exited(pid, code)) if pid == root => RootStatus::Exited(code),
            Ok(Reaped::Signalled(pid, signal)) if pid == root => RootStatus::Signalled(signal),
            Ok(Reaped::NoChild) | Err(_) => sys::exit(0),
            Ok(_) => continue,
        };
        let alone = loop {
            match sys::reap(-1, false) {
                Ok(Reaped::NoChild) => break true,
                Ok(Reaped::Nothing) | Err(_) => break false,
                Ok(_) => {}
            }
        };
        // A supervisor that is gone takes this process with it.
        let _ = protocol::send(channel.as_fd(), &FromInit::RootEnded { status, alone }, &[]);
    }
}

type Failure = (&'static str, io::Error);

/// Maps the user and the group to themselves in the user namespace the calling process has just entered.
pub(super) fn map_user(user: u32, group: u32) -> Result<(), Failure> {
    sys::set_dumpable(true);
    let write = |file: &str, text: String| std::fs::write(file, text).map_err(|error| ("mapping the user", error));
    write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    sys::set_dumpable(false);
    Ok(())
}

/// Keeps what is mounted in the own mount namespace from showing in the one it was copied from.
pub(super) fn separate_mounts() -> io::Result<()> {
    Ok(mount_change(
        "/",
        MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
    )?)
}

/// Maps the user, mounts the namespace's `/proc`, and limits the number of tasks where the kernel can.
fn set_up(map: Option<(u32, u32)>, tasks: u32) -> Result<(OwnedFd, OwnedFd, bool), Failure> {
    if let Some((user, group)) = map {
        map_user(user, group)?;
    }
    let directory = |what| {
        move || {
            open(
                "/proc",
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .map_err(|error| (what, io::Error::from(error)))
        }
    };
    let outer = directory("opening /proc")()?;
    separate_mounts().map_err(|error| ("making mounts private", error))?;
    mount(
        "proc",
        "/proc",
        "proc",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        None,
    )
    .map_err(|error| ("mounting /proc", error.into()))?;
    let procs = directory("opening the new /proc")()?;
    // Since Linux 6.14 each PID namespace has its own highest number: a bound for root too, whom resource limits do not
    // bind. Numbers below 300 are not given out again, so the bound is that much higher than the limit.
    let counted = std::fs::write("/proc/sys/kernel/pid_max", (u64::from(tasks) + 301).to_string()).is_ok();
    Ok((outer, procs, counted))
}
