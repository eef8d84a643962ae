//! Who a process is: its number together with its start time, and a pidfd while it is signalled.
//!
//! A number alone is reused by the kernel; nothing here signals by one. The window between opening a pidfd and
//! trusting it is closed by reading the start time again *after* the pidfd is open.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// A process for the length of one boot: number and start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// Process number, in the numbering of the reader's `/proc`.
    pub pid: i32,
    /// Start time in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start: u64,
}

/// How files of `/proc` are opened.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);

/// What `/proc/PID/stat` says of a process, as far as ownership needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) identity: Identity,
    pub(crate) state: u8,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    pub(crate) threads: u32,
}

impl Stat {
    /// Reads the stat of `pid`; `None` when there is no such process (or it cannot be read).
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Self::read(
            &rustix::fs::open(format!("/proc/{pid}/stat"), FILE, Mode::empty()).ok()?,
            pid,
        )
    }

    /// Reads the stat of `pid` in the `/proc` opened as `procs`.
    pub(crate) fn within(procs: BorrowedFd<'_>, pid: i32) -> Option<Self> {
        Self::read(
            &rustix::fs::openat(procs, format!("{pid}/stat"), FILE, Mode::empty()).ok()?,
            pid,
        )
    }

    fn read(file: &OwnedFd, pid: i32) -> Option<Self> {
        // The kernel gives the whole line in one read; it is far shorter than this.
        let mut text = [0_u8; 1024];
        let count = rustix::io::read(file, &mut text).ok()?;
        Self::parse(pid, &text[..count])
    }

    /// The command name may hold any bytes, spaces and parentheses too: fields are counted after the last `)`.
    fn parse(pid: i32, text: &[u8]) -> Option<Self> {
        let after = text.iter().rposition(|byte| *byte == b')')? + 2;
        let mut fields = text.get(after..)?.split(|byte| *byte == b' ');
        // proc(5): after the name come state (3), ppid (4), pgrp (5), session (6) … num_threads (20), starttime (22).
        let state = *fields.next()?.first()?;
        let parent = number(fields.next()?)?;
        let session = number(fields.nth(1)?)?;
        let threads = number(fields.nth(13)?)?;
        let start = number(fields.nth(1)?)?;
        Some(Self {
            identity: Identity { pid, start },
            state,
            parent: i32::try_from(parent).ok()?,
            session: i32::try_from(session).ok()?,
            threads: u32::try_from(threads).ok()?,
        })
    }

    /// Whether the process has ended and only waits to be reaped.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Whether the process cannot run: stopped, traced or ended.
    pub(crate) fn is_still(&self) -> bool {
        self.is_dead() || matches!(self.state, b'T' | b't')
    }
}

impl Identity {
    /// The calling process.
    ///
    /// # Errors
    /// When `/proc` is not there.
    pub fn current() -> io::Result<Self> {
        let pid = std::process::id().cast_signed();
        Self::of(pid).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "/proc does not show this process"))
    }

    /// The process that has this number now; `None` when there is none.
    #[must_use]
    pub fn of(pid: i32) -> Option<Self> {
        Stat::of(pid).map(|stat| stat.identity)
    }

    /// Whether this very process exists, be it as a zombie.
    #[must_use]
    pub fn exists(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Whether this very process exists and has not ended.
    #[must_use]
    pub fn is_alive(self) -> bool {
        Stat::of(self.pid).is_some_and(|stat| stat.identity == self && !stat.is_dead())
    }

    /// Opens a pidfd that is certain to mean this process; `None` when it is gone.
    #[must_use]
    pub fn open(self) -> Option<OwnedFd> {
        let fd = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // Read again now that the descriptor pins a process: the same start time means the same process.
        self.exists().then_some(fd)
    }

    /// Sends a signal to this very process; whether it was delivered (false: gone, or not permitted).
    pub fn signal(self, signal: Signal) -> bool {
        self.open()
            .is_some_and(|fd| pidfd_send_signal(fd.as_fd(), signal).is_ok())
    }
}

/// The identity of this boot: a marker of another one speaks of nothing that lives.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

/// Calls `each` with the number of every process the `/proc` opened as `procs` shows, in rising order.
fn each_number(procs: BorrowedFd<'_>, mut each: impl FnMut(i32)) {
    // Reading through a new description begins at the beginning, whoever read before.
    let Ok(dir) = Dir::read_from(procs) else { return };
    for entry in dir.flatten() {
        if let Some(pid) = number(entry.file_name().to_bytes()).and_then(|pid| i32::try_from(pid).ok()) {
            each(pid);
        }
    }
}

/// Calls `each` with every process the `/proc` opened as `procs` shows, in rising order of number. A process that ends
/// meanwhile may be left out.
pub(crate) fn each_within(procs: BorrowedFd<'_>, mut each: impl FnMut(Stat)) {
    each_number(procs, |pid| {
        if let Some(stat) = Stat::within(procs, pid) {
            each(stat);
        }
    });
}

/// Every process `/proc` shows.
pub(crate) fn all() -> Vec<Stat> {
    let mut found = Vec::new();
    if let Ok(procs) = rustix::fs::open("/proc", FILE | OFlags::DIRECTORY, Mode::empty()) {
        each_within(procs.as_fd(), |stat| found.push(stat));
    }
    found
}

/// The descendants of `ancestor` in one look at `/proc`, without itself; `found` is called with each as soon as it is
/// known, while the look goes on. Numbers in `known` are taken for descendants without being looked at.
///
/// One look may miss a process whose parent ended during it (it is then seen under its subreaper by the next look);
/// that is why callers look until nothing changes and take the kernel's ECHILD, not this, as proof.
pub(crate) fn descendants_but(ancestor: i32, known: &HashSet<i32>, mut found: impl FnMut(&Stat)) {
    let Ok(procs) = rustix::fs::open("/proc", FILE | OFlags::DIRECTORY, Mode::empty()) else {
        return;
    };
    let mut members = HashSet::from([ancestor]);
    let mut others: Vec<Stat> = Vec::new();
    each_number(procs.as_fd(), |pid| {
        if known.contains(&pid) {
            members.insert(pid);
            return;
        }
        let Some(stat) = Stat::within(procs.as_fd(), pid) else {
            return;
        };
        // A parent mostly has the lower number, and was seen before.
        if members.contains(&stat.parent) {
            members.insert(stat.identity.pid);
            found(&stat);
        } else {
            others.push(stat);
        }
    });
    // After the numbers have wrapped around, parents may come later than their children.
    loop {
        let before = members.len();
        others.retain(|stat| {
            let is_member = members.contains(&stat.parent);
            if is_member {
                members.insert(stat.identity.pid);
                found(stat);
            }
            !is_member
        });
        if members.len() == before {
            return;
        }
    }
}

/// [`descendants_but`] with nothing known.
pub(crate) fn descendants(ancestor: i32, found: impl FnMut(&Stat)) {
    descendants_but(ancestor, &HashSet::new(), found);
}

/// How many tasks the machine has, from one short read.
pub(crate) fn tasks_of_machine() -> Option<usize> {
    // proc(5): three averages, then "runnable/all".
    fs::read_to_string("/proc/loadavg")
        .ok()?
        .split(' ')
        .nth(3)?
        .split_once('/')?
        .1
        .parse()
        .ok()
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_parentheses_does_not_shift_the_fields() {
        let text = b"7 (a) R 1 (b ) S 41 42 43 0 -1 4194304 1 0 0 0 3 4 0 0 20 0 5 0 987654 1 1";
        let stat = Stat::parse(7, text).expect("parses");
        assert_eq!(stat.identity, Identity { pid: 7, start: 987_654 });
        assert_eq!((stat.state, stat.parent, stat.session, stat.threads), (b'S', 41, 43, 5));
    }

    #[test]
    fn a_child_is_a_descendant_and_gone_after_its_end() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("spawn");
        let pid = child.id().cast_signed();
        let identity = Identity::of(pid).expect("lives");
        let mut seen = false;
        descendants(std::process::id().cast_signed(), |stat| {
            seen |= stat.identity == identity
        });
        assert!(seen);
        assert!(identity.signal(Signal::KILL));
        child.wait().expect("wait");
        assert!(!identity.exists());
        assert!(!identity.signal(Signal::KILL), "a reaped process cannot be signalled");
        assert!(
            !Identity {
                pid: std::process::id().cast_signed(),
                start: 1
            }
            .signal(Signal::KILL),
            "another start time"
        );
    }
}
