//! What holds a tree together: the three tiers behind one face, and the count of its tasks.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::launch::{Child, Gate, become_command};
use super::namespace::{self, Namespace};
use super::{Run, kill};
use crate::cgroup::{self, Cgroups};
use crate::identity::{self, Identity, Stat};
use crate::protocol::{CountTier, TreeTier};
use crate::sys::{self, Fork};

/// The tier a tree lives in.
pub(super) enum Hold {
    /// Its own cgroup.
    Cgroup(Cgroups),
    /// Its own PID namespace.
    Namespace(Namespace),
    /// Nothing but the subreaper.
    Rlimits {
        /// Whether a resource limit counts the user's tasks.
        counted: bool,
        /// The root, and with it the process group it made.
        group: OwnedFd,
    },
}

/// A root that waits at its gate.
pub(super) struct Launched {
    pub(super) hold: Hold,
    pub(super) root: Identity,
    /// Opens the gate by a byte; closing it tells the child to give up.
    pub(super) opener: Option<OwnedFd>,
    /// Where the child reports a failed step.
    pub(super) status: Option<OwnedFd>,
}

/// Sets up the first tier of the wanted ones that this machine allows, and a root waiting in it.
///
/// # Errors
/// Why none of them could be had.
pub(super) fn launch(run: &Run, streams: &[OwnedFd], landlock: bool, me: Identity) -> Result<Launched, String> {
    let mut why = Vec::new();
    for tier in &run.start.tree.wanted {
        let child = Child {
            start: &run.start,
            streams,
            lease: run.lease.as_ref(),
            tasks: None,
            counter: None,
            landlock,
        };
        let launched = match tier {
            TreeTier::Cgroup => in_cgroup(child, me),
            TreeTier::PidNamespace => in_namespace(child),
            TreeTier::Rlimits => alone(child),
        };
        match launched {
            Ok(launched) => return Ok(launched),
            Err(error) => why.push(format!("{tier:?}: {error}")),
        }
    }
    Err(format!("no wanted tree tier can be had here ({})", why.join("; ")))
}

fn in_cgroup(child: Child<'_>, me: Identity) -> io::Result<Launched> {
    let cgroups = Cgroups::create(&cgroup::name_of(me), child.start.processes)?;
    let launched = cgroups.counter().and_then(|counter| {
        let counter = counter.as_ref();
        fork_root(&Child { counter, ..child }, Some(&cgroups))
    });
    match launched {
        Ok((root, opener, status)) => Ok(Launched {
            hold: Hold::Cgroup(cgroups),
            root,
            opener: Some(opener),
            status: Some(status),
        }),
        Err(error) => {
            cgroups.remove();
            Err(error)
        }
    }
}

fn in_namespace(child: Child<'_>) -> io::Result<Launched> {
    let (namespace, opener, status) = namespace::launch(child, Gate::new()?)?;
    let root = namespace.root;
    Ok(Launched {
        hold: Hold::Namespace(namespace),
        root,
        opener: Some(opener),
        status: Some(status),
    })
}

fn alone(mut child: Child<'_>) -> io::Result<Launched> {
    let user = rustix::process::getuid();
    // The kernel counts all tasks of the user, so what is there already comes on top. It does not bind root.
    let counted = !user.is_root();
    if counted {
        let present: u64 = identity::all()
            .iter()
            .filter(|stat| {
                std::fs::metadata(format!("/proc/{}", stat.identity.pid)).is_ok_and(|data| {
                    use std::os::unix::fs::MetadataExt;
                    data.uid() == user.as_raw()
                })
            })
            .map(|stat| u64::from(stat.threads))
            .sum();
        child.tasks = Some(present + u64::from(child.start.processes));
    }
    let (root, opener, status) = fork_root(&child, None)?;
    let group = root
        .open()
        .ok_or_else(|| io::Error::other("the forked child is gone"))?;
    Ok(Launched {
        hold: Hold::Rlimits { counted, group },
        root,
        opener: Some(opener),
        status: Some(status),
    })
}

/// Forks a child that waits at its gate, in the cgroup if one is given.
fn fork_root(child: &Child<'_>, cgroups: Option<&Cgroups>) -> io::Result<(Identity, OwnedFd, OwnedFd)> {
    let gate = Gate::new()?;
    let born = match cgroups {
        Some(cgroups) => cgroups.open().and_then(|dir| sys::fork_into_cgroup(dir.as_fd())).ok(),
        None => None,
    };
    // An older kernel, or a filter of system calls, has it born here.
    let is_moved = born.is_none();
    let pid = match born.map_or_else(sys::fork, Ok)? {
        Fork::Child => become_command(child, gate),
        Fork::Parent(pid) => pid,
    };
    let Gate {
        go: (_, opener),
        status: (reader, _),
    } = gate;
    let end = |opener, error| {
        drop(opener);
        // It ends by itself: its gate is closed.
        let _ = sys::reap(pid, true);
        Err(error)
    };
    if let (Some(cgroups), true) = (cgroups, is_moved)
        && let Err(error) = cgroups.add(pid)
    {
        return end(opener, error);
    }
    match Identity::of(pid) {
        Some(root) => Ok((root, opener, reader)),
        None => end(opener, io::Error::other("/proc does not show the forked child")),
    }
}

impl Hold {
    pub(super) fn tier(&self) -> TreeTier {
        match self {
            Self::Cgroup(_) => TreeTier::Cgroup,
            Self::Namespace(_) => TreeTier::PidNamespace,
            Self::Rlimits { .. } => TreeTier::Rlimits,
        }
    }

    pub(super) fn count(&self) -> CountTier {
        let counted = match self {
            Self::Cgroup(cgroups) => cgroups.counted,
            Self::Namespace(namespace) => namespace.counted,
            Self::Rlimits { counted, .. } => *counted,
        };
        if counted { CountTier::Kernel } else { CountTier::Sampled }
    }

    pub(super) fn init(&self) -> Option<Identity> {
        match self {
            Self::Namespace(namespace) => Some(namespace.init),
            _ => None,
        }
    }

    pub(super) fn cgroups(&self) -> Vec<PathBuf> {
        match self {
            Self::Cgroup(cgroups) => cgroups.dirs().cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// Whether the tier knows of nobody left; asked only after the kernel said that no child is left.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Cgroup(cgroups) => !cgroups.is_populated(),
            _ => true,
        }
    }

    /// One round of killing.
    pub(super) fn kill(&self) {
        match self {
            Self::Cgroup(cgroups) => {
                cgroups.kill();
                // What left the cgroup (root may) is still a descendant.
                kill::signal_all(Signal::KILL, None);
            }
            Self::Namespace(namespace) => {
                namespace.init.signal(Signal::KILL);
            }
            Self::Rlimits { group, .. } => kill::freeze_and_kill(Some(group)),
        }
    }

    /// Removes what was made for the tree.
    pub(super) fn remove(&self) {
        if let Self::Cgroup(cgroups) = self {
            cgroups.remove();
        }
    }

    /// Whether the tree has at least `limit` tasks now.
    fn has(&self, limit: usize) -> (usize, bool) {
        let mut seen = Vec::new();
        match self {
            Self::Cgroup(cgroups) => {
                let tasks = cgroups.tasks();
                return (tasks, tasks >= limit);
            }
            Self::Namespace(namespace) => namespace.each(|stat| seen.push(*stat)),
            Self::Rlimits { .. } => identity::descendants(std::process::id().cast_signed(), |stat| seen.push(*stat)),
        }
        let count = |stats: &[Stat]| stats.iter().map(|stat| stat.threads as usize).sum::<usize>();
        let tasks = count(&seen);
        if tasks < limit {
            return (tasks, false);
        }
        // During one look a fast chain of short-lived processes is seen many times. Youngest first, an ancestor that
        // passed its work on is gone by the time it is looked at again.
        let again = |pid| match self {
            Self::Namespace(namespace) => namespace.stat(pid),
            _ => Stat::of(pid),
        };
        seen.sort_unstable_by_key(|stat| std::cmp::Reverse((stat.identity.start, stat.identity.pid)));
        seen.retain(|stat| again(stat.identity.pid).is_some_and(|now| now.identity == stat.identity && !now.is_dead()));
        let tasks = count(&seen);
        (tasks, tasks >= limit)
    }
}

/// Notices that a tree reached its limit of tasks.
///
/// Where the kernel counts in a cgroup, it is asked now and then whether it refused a task (its event file cannot be polled
/// in every version). Elsewhere the tasks are counted. In the `rlimits` tier a count is a look at every process of the
/// machine; between two of those the number of tasks of the whole machine is watched, which is one short read: when it
/// grew by half the limit, it is time for a look.
pub(super) struct Sampler {
    limit: usize,
    next: Instant,
    /// When to count whatever the machine's number says.
    due: Instant,
    /// Tasks of the machine at the last count, where that is watched.
    machine: Option<usize>,
}

impl Sampler {
    /// Time between two looks at something cheap, or at a tree near its limit.
    const SHORT: Duration = Duration::from_millis(10);
    /// Time between two looks at a small tree.
    const LONG: Duration = Duration::from_millis(100);

    pub(super) fn new(hold: &Hold, limit: u32) -> Self {
        let machine = match hold {
            Hold::Rlimits { .. } => identity::tasks_of_machine(),
            _ => None,
        };
        let due = Instant::now() + Self::SHORT;
        Self {
            limit: limit as usize,
            next: due,
            due,
            machine,
        }
    }

    /// When to look next.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Looks if it is time; whether the limit was reached.
    pub(super) fn exceeded(&mut self, hold: &Hold) -> bool {
        let begun = Instant::now();
        if begun < self.next {
            return false;
        }
        if let Hold::Cgroup(cgroups) = hold
            && cgroups.counted
        {
            self.next = begun + Self::LONG / 2;
            return cgroups.refusals() > 0;
        }
        let machine = self.machine.and_then(|_| identity::tasks_of_machine());
        let grown = match (self.machine, machine) {
            (Some(before), Some(now)) => now >= before + self.limit / 2,
            _ => true,
        };
        self.next = begun + Self::SHORT;
        if !grown && begun < self.due {
            return false;
        }
        let (tasks, reached) = hold.has(self.limit);
        let end = Instant::now();
        let near = tasks * 4 > self.limit;
        // Reading a cgroup's list costs next to nothing.
        let near = near || matches!(hold, Hold::Cgroup(_));
        // A small tree may cost a twentieth of the time, one near its limit more.
        self.due = end
            + if near {
                Self::SHORT
            } else {
                ((end - begun) * 20).max(Self::LONG)
            };
        if self.machine.is_none() {
            self.next = self.due.min(end + Self::LONG);
        } else if !near {
            self.machine = machine;
        }
        reached
    }
}
