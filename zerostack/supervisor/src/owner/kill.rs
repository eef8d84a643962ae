//! Ending all descendants of the calling process, whatever they do meanwhile.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::identity::{self, Identity};
use crate::sys::{self, Reaped};

/// Longest time spent on stopping a tree before it is killed as it is.
const FREEZE: Duration = Duration::from_millis(500);

/// Sends a signal to every living descendant except `spared`.
pub(super) fn signal_all(signal: Signal, spared: Option<Identity>) {
    identity::descendants(std::process::id().cast_signed(), |stat| {
        if !stat.is_dead() && Some(stat.identity) != spared {
            stat.identity.signal(signal);
        }
    });
}

/// Stops every descendant until two looks show the same, still set; then kills all of it.
///
/// Stopping first keeps a tree that forks faster than it is killed from renewing itself. The process group of the root is
/// stopped at one stroke: the kernel lets no fork slip through. Others are stopped one by one in the middle of each look;
/// new processes have higher numbers, so a look, which goes upwards, chases them.
pub(super) fn freeze_and_kill(root: Option<&OwnedFd>) {
    let me = std::process::id().cast_signed();
    let until = Instant::now() + FREEZE;
    let mut before: Option<HashSet<Identity>> = None;
    if let Some(root) = root {
        sys::signal_group(root.as_fd(), libc::SIGSTOP);
    }
    loop {
        let mut still = true;
        let mut living = HashSet::new();
        identity::descendants(me, |stat| {
            if !stat.is_still() {
                still = false;
                stat.identity.signal(Signal::STOP);
            }
            if !stat.is_dead() {
                living.insert(stat.identity);
            }
        });
        if (still && before.as_ref() == Some(&living)) || Instant::now() > until {
            break;
        }
        before = Some(living);
        if !still {
            // Let the signals arrive.
            std::thread::yield_now();
        }
    }
    if let Some(root) = root {
        sys::signal_group(root.as_fd(), libc::SIGKILL);
    }
    signal_all(Signal::KILL, None);
}

/// Kills and reaps until the kernel says that no child is left.
pub(super) fn exterminate() {
    let mut pause = Duration::from_millis(1);
    loop {
        loop {
            match sys::reap(-1, false) {
                Ok(Reaped::NoChild) => return,
                Ok(Reaped::Nothing) | Err(_) => break,
                Ok(_) => {}
            }
        }
        freeze_and_kill(None);
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}
