//! The supervisor's process as the host's child: started, signalled and reaped by pidfd alone.
//!
//! The host may have other children, with owners of their own; nothing here ever waits for "any child".

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid};

use crate::error::Error;

/// How the guard ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuardEnd {
    /// With this exit code (`owner::EXIT_*`).
    Exited(i32),
    /// By a signal.
    Signalled,
    /// Somebody else reaped it (a host that ignores SIGCHLD): its status is lost.
    Unknown,
}

/// A running guard.
#[derive(Debug)]
pub(crate) struct Guard {
    pidfd: OwnedFd,
}

impl Guard {
    /// Starts the program with the socket as its standard input.
    ///
    /// No code runs between fork and exec, so the standard library uses `posix_spawn`: a host with a large heap does not
    /// copy its page tables for every command.
    pub(crate) fn start(program: &Path, socket: OwnedFd) -> Result<Self, Error> {
        let failed = || Error::io(format!("starting {}", program.display()));
        let child = Command::new(program)
            .env_clear()
            .stdin(Stdio::from(socket))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed())?;
        // The child was not waited for, so its number is its own (unless the host ignores SIGCHLD and it ended already,
        // and then the number most likely names nobody).
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| failed()(error.into()))?;
        Ok(Self { pidfd })
    }

    /// Wakes it, should the command have stopped it.
    pub(crate) fn wake(&self) {
        // Gone is as good as awake.
        let _ = pidfd_send_signal(&self.pidfd, Signal::CONT);
    }

    /// Waits for its end and reaps it; `None` when it still lives after `patience`.
    pub(crate) fn reap(&self, patience: Duration) -> Option<GuardEnd> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).ok()?;
            let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => return None,
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        match waitid(
            WaitId::PidFd(self.pidfd.as_fd()),
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
        ) {
            Ok(Some(status)) => Some(status.exit_status().map_or(GuardEnd::Signalled, GuardEnd::Exited)),
            Ok(None) => None,
            Err(_) => Some(GuardEnd::Unknown),
        }
    }
}

/// Puts a descriptor's open description into non-blocking mode.
pub(crate) fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | rustix::fs::OFlags::NONBLOCK)?)
}
