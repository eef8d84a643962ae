//! Ending all descendants of the calling process, whatever they do meanwhile.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::identity::{self, Identity};
use crate::sys::{self, Reaped};

/// Longest time spent on stopping a tree before it is killed as it is.
const FREEZE: Duration = Duration::from_millis(250);

/// Sends a signal to every living descendant except `spared`; how many there were.
pub(super) fn signal_all(signal: Signal, spared: Option<Identity>) -> usize {
    let me = std::process::id().cast_signed();
    identity::descendants(me)
        .iter()
        .filter(|stat| !stat.is_dead() && Some(stat.identity) != spared)
        .map(|stat| stat.identity.signal(signal))
        .count()
}

/// Stops every descendant until two looks show the same, still set; then kills all of it.
///
/// Stopping first keeps a tree that forks faster than it is killed from renewing itself. New processes have higher
/// numbers than those already seen, so one look, which goes upwards, chases them.
pub(super) fn freeze_and_kill() {
    let me = std::process::id().cast_signed();
    let until = Instant::now() + FREEZE;
    let mut before: Option<HashSet<Identity>> = None;
    loop {
        let now = identity::descendants(me);
        let mut still = true;
        for stat in now.iter().filter(|stat| !stat.is_still()) {
            still = false;
            stat.identity.signal(Signal::STOP);
        }
        let set: HashSet<Identity> = now.iter().filter(|stat| !stat.is_dead()).map(|stat| stat.identity).collect();
        if (still && before.as_ref() == Some(&set)) || Instant::now() > until {
            break;
        }
        before = Some(set);
        if !still {
            // Let the signals arrive.
            std::thread::yield_now();
        }
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
        freeze_and_kill();
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}
