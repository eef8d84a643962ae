//! Ending all descendants of the calling process, whatever they do meanwhile.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::identity::{self, Identity};
use crate::sys::{self, Reaped};

/// How long a process may take to stop, before it is taken for one that cannot (uninterruptible sleep).
const STOPPING: Duration = Duration::from_millis(250);

/// Longest time spent on stopping a tree before it is killed as it is.
const FREEZE: Duration = Duration::from_secs(20);

/// Sends a signal to every living descendant except `spared`.
pub(super) fn signal_all(signal: Signal, spared: Option<Identity>) {
    identity::descendants(std::process::id().cast_signed(), |stat| {
        if !stat.is_dead() && Some(stat.identity) != spared {
            stat.identity.signal(signal);
        }
    });
}

/// Stops every descendant until a look shows nothing new and nothing that moves; then kills all of it.
///
/// Nothing is killed before: a storm that lives at the edge of what the machine can hold would fork again into every number
/// and page that a kill sets free, while stopped processes leave it less and less room. The process group of the root is
/// stopped at one stroke: the kernel lets no fork slip through. Others are stopped one by one in the middle of each look;
/// new processes have higher numbers (until those wrap around), so a look, which goes upwards, chases them.
pub(super) fn freeze_and_kill(root: Option<&OwnedFd>) {
    if let Some(root) = root {
        sys::signal_group(root.as_fd(), libc::SIGSTOP);
    }
    freeze();
    if let Some(root) = root {
        sys::signal_group(root.as_fd(), libc::SIGKILL);
    }
    signal_all(Signal::KILL, None);
}

fn freeze() {
    let me = std::process::id().cast_signed();
    let begun = Instant::now();
    let mut news = begun;
    let mut seen = HashSet::new();
    // Numbers seen standing still: not looked at again until a look finds nothing else.
    let mut still = HashSet::new();
    loop {
        let whole = still.is_empty();
        let (mut new, mut moving) = (false, false);
        let mut stopped = Vec::new();
        identity::descendants_but(me, &still, |stat| {
            new |= seen.insert(stat.identity);
            if stat.is_still() {
                stopped.push(stat.identity.pid);
            } else {
                moving = true;
                stat.identity.signal(Signal::STOP);
            }
        });
        let now = Instant::now();
        if new {
            news = now;
        }
        let quiet = !new && (!moving || now - news > STOPPING);
        if (quiet && whole) || now - begun > FREEZE {
            return;
        }
        if quiet {
            // Look at everything again: somebody may have been woken by another that is stopped only now.
            still.clear();
        } else {
            still.extend(stopped);
            // Let the signals arrive.
            std::thread::yield_now();
        }
    }
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
