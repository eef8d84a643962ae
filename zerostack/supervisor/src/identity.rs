//! Who a process is: its number together with its start time, and a pidfd while it is signalled.
//!
//! A number alone is reused by the kernel; nothing here signals by one. The window between opening a pidfd and
//! trusting it is closed by reading the start time again *after* the pidfd is open.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

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
        Self::parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The command name may hold any bytes, spaces and parentheses too: fields are counted after the last `)`.
    pub(crate) fn parse(pid: i32, text: &[u8]) -> Option<Self> {
        let after = text.iter().rposition(|byte| *byte == b')')? + 1;
        let fields: Vec<&str> = std::str::from_utf8(&text[after..]).ok()?.split_ascii_whitespace().collect();
        // proc(5): after the name come state (3), ppid (4), pgrp (5), session (6) … num_threads (20), starttime (22).
        Some(Self {
            identity: Identity { pid, start: fields.get(19)?.parse().ok()? },
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
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
        self.open().is_some_and(|fd| pidfd_send_signal(fd.as_fd(), signal).is_ok())
    }
}

/// The identity of this boot: a marker of another one speaks of nothing that lives.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// Every process `/proc` shows, in rising order of number. A process that ends meanwhile is left out.
pub(crate) fn all() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Stat::of)
        .collect()
}

/// The living and dead descendants of `ancestor` in one look at `/proc`, without itself.
///
/// One look may miss a process whose parent ended during it (it is then seen under its subreaper by the next look);
/// that is why callers look until nothing changes and take the kernel's ECHILD, not this, as proof.
pub(crate) fn descendants(ancestor: i32) -> Vec<Stat> {
    let mut rest = all();
    let mut found: Vec<Stat> = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        let (children, others): (Vec<Stat>, Vec<Stat>) = rest.into_iter().partition(|stat| stat.parent == parent);
        parents.extend(children.iter().map(|stat| stat.identity.pid));
        found.extend(children);
        rest = others;
    }
    found
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
        assert!(descendants(std::process::id().cast_signed()).iter().any(|stat| stat.identity == identity));
        assert!(identity.signal(Signal::KILL));
        child.wait().expect("wait");
        assert!(!identity.exists());
        assert!(!identity.signal(Signal::KILL), "a reaped process cannot be signalled");
        assert!(!Identity { pid: std::process::id().cast_signed(), start: 1 }.signal(Signal::KILL), "another start time");
    }
}
