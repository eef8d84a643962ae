//! What holds a tree together: the three tiers behind one face, and the count of its tasks.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::launch::{Child, Gate, become_command};
use super::namespace::{self, Namespace};
use super::{Run, kill};
use crate::cgroup::Cgroups;
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
        let child = Child { start: &run.start, streams, lease: run.lease.as_ref(), tasks: None, landlock };
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
    let cgroups = Cgroups::create(&format!("zero-{}-{}", me.pid, me.start), child.start.processes)?;
    let launched = fork_root(&child).and_then(|(root, opener, status)| match cgroups.add(root.pid) {
        Ok(()) => Ok((root, opener, status)),
        Err(error) => {
            drop(opener);
            // It ends by itself: its gate is closed.
            let _ = sys::reap(root.pid, true);
            Err(error)
        }
    });
    match launched {
        Ok((root, opener, status)) => {
            Ok(Launched { hold: Hold::Cgroup(cgroups), root, opener: Some(opener), status: Some(status) })
        }
        Err(error) => {
            cgroups.remove();
            Err(error)
        }
    }
}

fn in_namespace(child: Child<'_>) -> io::Result<Launched> {
    let (namespace, opener, status) = namespace::launch(child, Gate::new()?)?;
    let root = namespace.root;
    Ok(Launched { hold: Hold::Namespace(namespace), root, opener: Some(opener), status: Some(status) })
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
    let (root, opener, status) = fork_root(&child)?;
    Ok(Launched { hold: Hold::Rlimits { counted }, root, opener: Some(opener), status: Some(status) })
}

fn fork_root(child: &Child<'_>) -> io::Result<(Identity, OwnedFd, OwnedFd)> {
    let gate = Gate::new()?;
    let pid = match sys::fork()? {
        Fork::Child => become_command(child, gate),
        Fork::Parent(pid) => pid,
    };
    let Gate { go: (_, opener), status: (reader, _) } = gate;
    let root = Identity::of(pid).ok_or_else(|| io::Error::other("/proc does not show the forked child"))?;
    Ok((root, opener, reader))
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
            Self::Rlimits { counted } => *counted,
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
            Self::Rlimits { .. } => kill::freeze_and_kill(),
        }
    }

    /// Removes what was made for the tree.
    pub(super) fn remove(&self) {
        if let Self::Cgroup(cgroups) = self {
            cgroups.remove();
        }
    }

    /// How many tasks the tree has now.
    fn tasks(&self) -> usize {
        let sum = |stats: &[Stat]| stats.iter().map(|stat| stat.threads as usize).sum();
        match self {
            Self::Cgroup(cgroups) => cgroups.tasks(),
            Self::Namespace(namespace) => namespace.tasks(),
            Self::Rlimits { .. } => sum(&identity::descendants(std::process::id().cast_signed())),
        }
    }
}

/// Notices that a tree reached its limit of tasks: by the kernel's event where there is one, else by counting.
pub(super) struct Sampler {
    limit: usize,
    event: Option<std::fs::File>,
    next: Option<Instant>,
}

impl Sampler {
    /// Shortest time between two counts.
    const SHORTEST: Duration = Duration::from_millis(10);
    /// Longest time between two counts.
    const LONGEST: Duration = Duration::from_millis(100);

    pub(super) fn new(hold: &Hold, limit: u32) -> Self {
        let event = match hold {
            Hold::Cgroup(cgroups) => cgroups.refusal_file(),
            _ => None,
        };
        let mut sampler = Self { limit: limit as usize, event, next: None };
        if let Some(event) = &mut sampler.event {
            // The kernel reports changes since the last read.
            let _ = io::Read::read(event, &mut [0; 256]);
        } else {
            sampler.next = Instant::now().checked_add(Self::SHORTEST);
        }
        sampler
    }

    /// What to poll for an event.
    pub(super) fn event(&self) -> Option<BorrowedFd<'_>> {
        self.event.as_ref().map(AsFd::as_fd)
    }

    /// When to count next.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Whether the limit was reached, as far as an event or a due count tells.
    pub(super) fn exceeded(&mut self, hold: &Hold, event: bool) -> bool {
        if event && let Hold::Cgroup(cgroups) = hold {
            if let Some(file) = &mut self.event {
                let _ = io::Seek::rewind(file);
                let _ = io::Read::read(file, &mut [0; 256]);
            }
            return cgroups.refusals() > 0;
        }
        let now = Instant::now();
        if self.next.is_none_or(|next| now < next) {
            return false;
        }
        let tasks = hold.tasks();
        // A count may take at most a twentieth of the time; a tree near its limit is counted often.
        let cost = now.elapsed() * 20;
        let pause = if tasks * 4 > self.limit { Self::SHORTEST } else { Self::LONGEST / 4 };
        self.next = Instant::now().checked_add(pause.max(cost).min(Self::LONGEST));
        tasks >= self.limit
    }
}
