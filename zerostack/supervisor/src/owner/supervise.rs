//! The supervisor: sets the tree up, watches it, ends it, and says what came of it.
//!
//! One loop over `poll`: the host's socket, ended children, the gate's status pipe, the guard's life, the tier's own
//! events, and the next deadline. States go only forward: running → asked (TERM sent) → killing → empty. The reason
//! is set once, by whatever came first.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::hold::{Hold, Launched};
use super::namespace::FromInit;
use super::{EXIT_EMPTY, Run, hold, kill, overlay};
use crate::identity::{self, Identity};
use crate::marker::{self, Marker, RUN_VARIABLE};
use crate::protocol::{self, EndReason, FilePolicy, FileTier, RootStatus, Step, Tiers, ToHost, ToSupervisor};
use crate::sys::{self, Reaped};

/// Exit code when the supervisor could not do its work; the guard then takes over.
const EXIT_FAILED: i32 = 5;

#[derive(Clone, Copy)]
enum Phase {
    Running,
    /// TERM and CONT were sent; KILL follows at this time.
    Asked(Instant),
    /// Killing; the next round at this time, and the pause after it.
    Killing(Instant, Duration),
}

struct Supervisor {
    run: Run,
    socket: Option<OwnedFd>,
    me: Identity,
    launched: Launched,
    tiers: Tiers,
    begun: Instant,
    phase: Phase,
    reason: Option<EndReason>,
    root: Option<RootStatus>,
    /// Read end of the gate's status pipe until exec happened or failed.
    gate: Option<OwnedFd>,
    guard_life: Option<OwnedFd>,
    cleanup_until: Option<Instant>,
    uncertain: bool,
    sampler: hold::Sampler,
    /// The namespaces of the view mounted here, for the host.
    mounted: Vec<OwnedFd>,
}

/// Runs one command from start message to verdict; never returns.
pub(super) fn run(mut run: Run, streams: Vec<OwnedFd>, socket: OwnedFd, guard_life: OwnedFd) -> ! {
    sys::set_name(c"zero-supervisor");
    let begun = Instant::now();
    let say = |message: &ToHost| {
        // A host that is gone is noticed by the loop, or needs no answer.
        let _ = protocol::send(socket.as_fd(), message, &[]);
    };
    let refuse = |detail: String, unsupported: bool| -> ! {
        say(&ToHost::Refused { detail, unsupported });
        sys::exit(EXIT_EMPTY)
    };
    let (Ok(()), Ok(children), Ok(me)) = (sys::become_subreaper(), sys::child_signal_fd(), Identity::current()) else {
        refuse("cannot become a subreaper".into(), true)
    };
    let abi = sys::landlock_abi();
    let files = match (&run.start.files, abi) {
        (FilePolicy::Open, _) => FileTier::None,
        (FilePolicy::Landlock { required: true, .. }, 0) => refuse(
            "files tier `landlock` is required, but this kernel has no Landlock".into(),
            true,
        ),
        (FilePolicy::Landlock { .. }, 0) => FileTier::None,
        (FilePolicy::Landlock { .. }, _) => FileTier::Landlock,
    };
    // The command inherits the view; nothing the supervisor itself does touches the workspace.
    let mounted = match overlay::enter(&run.start.view, std::mem::take(&mut run.view)) {
        Ok(mounted) => mounted,
        Err(error) => refuse(
            format!("the private view of the workspace cannot be mounted: {error}"),
            true,
        ),
    };
    let launched = match hold::launch(&run, &streams, files == FileTier::Landlock, me) {
        Ok(launched) => launched,
        Err(why) => refuse(why, true),
    };
    drop(streams);
    // The one that ends a fork storm must not be starved by it.
    sys::run_first();
    let tiers = Tiers {
        tree: launched.hold.tier(),
        files,
        signals_scoped: matches!(launched.hold, Hold::Namespace { .. })
            || (files == FileTier::Landlock && abi >= super::confine::SCOPES_SIGNALS),
        count: launched.hold.count(),
    };
    let sampler = hold::Sampler::new(&launched.hold, run.start.processes);
    let mut supervisor = Supervisor {
        run,
        socket: Some(socket),
        me,
        launched,
        tiers,
        begun,
        phase: Phase::Running,
        reason: None,
        root: None,
        gate: None,
        guard_life: Some(guard_life),
        cleanup_until: None,
        uncertain: false,
        sampler,
        mounted,
    };
    // Own before execute: the marker is on disk before the child is told to go on.
    if let Err(error) = supervisor.write_marker() {
        let detail = format!("cannot write the marker of the tree: {error}");
        supervisor.launched.opener = None;
        supervisor.say(&ToHost::Refused {
            detail,
            unsupported: false,
        });
        kill::exterminate();
        supervisor.launched.hold.remove();
        sys::exit(EXIT_EMPTY)
    }
    supervisor.gate = supervisor.launched.status.take();
    if let Some(opener) = supervisor.launched.opener.take() {
        // A child that is gone already is noticed by the loop.
        let _ = rustix::io::write(&opener, b"g");
    }
    supervisor.watch(&children)
}

impl Supervisor {
    fn write_marker(&self) -> std::io::Result<()> {
        let Some(dir) = self.run.marker_dir() else {
            return Ok(());
        };
        let value = self
            .run
            .start
            .env
            .iter()
            .find(|(name, _)| name == RUN_VARIABLE.as_bytes());
        Marker {
            boot: identity::boot_id(),
            guard: self.run.guard,
            supervisor: self.me,
            root: self.launched.root,
            init: self.launched.hold.init(),
            cgroups: self.launched.hold.cgroups(),
            tree: self.tiers.tree,
            run: value
                .map(|(_, value)| String::from_utf8_lossy(value).into_owned())
                .unwrap_or_default(),
        }
        .write(&dir)
    }

    fn say(&mut self, message: &ToHost) {
        let beside: Vec<_> = match message {
            ToHost::Started { .. } | ToHost::SpawnFailed { .. } => self.mounted.iter().map(AsFd::as_fd).collect(),
            _ => Vec::new(),
        };
        if let Some(socket) = &self.socket
            && protocol::send(socket.as_fd(), message, &beside).is_err()
        {
            self.socket = None;
        }
    }

    fn watch(mut self, children: &OwnedFd) -> ! {
        loop {
            let no_child = self.reap();
            if no_child && self.launched.hold.is_empty() {
                self.finish();
            }
            self.advance();
            self.wait(children);
        }
    }

    /// Reaps whatever has ended; whether the kernel says that no child is left.
    fn reap(&mut self) -> bool {
        loop {
            let (pid, status) = match sys::reap(-1, false) {
                Ok(Reaped::NoChild) => return true,
                Ok(Reaped::Nothing) => return false,
                Ok(Reaped::Stopped(_)) => continue,
                Ok(Reaped::Exited(pid, code)) => (pid, RootStatus::Exited(code)),
                Ok(Reaped::Signalled(pid, signal)) => (pid, RootStatus::Signalled(signal)),
                Err(_) => sys::exit(EXIT_FAILED),
            };
            if pid == self.launched.root.pid && self.root.is_none() {
                self.root = Some(status);
            }
            if self.launched.hold.init().is_some_and(|init| init.pid == pid) {
                self.hear_init();
                // Whoever was left was killed with the namespace.
                self.root.get_or_insert(RootStatus::Signalled(libc::SIGKILL));
            }
        }
    }

    /// Takes what init said, if anything; true when it said that it ends by itself.
    fn hear_init(&mut self) -> bool {
        let Hold::Namespace(namespace) = &self.launched.hold else {
            return false;
        };
        if !readable(namespace.channel.as_fd()) {
            return false;
        }
        match protocol::receive::<FromInit>(namespace.channel.as_fd()) {
            Ok((FromInit::RootEnded { status, alone }, _)) => {
                self.root = Some(status);
                alone
            }
            _ => false,
        }
    }

    /// Makes the transitions that are due.
    fn advance(&mut self) {
        let now = Instant::now();
        match self.phase {
            Phase::Running => {
                let timeout = self.timeout_at();
                if self.root.is_some() {
                    self.begin(EndReason::Natural);
                } else if timeout.is_some_and(|at| now >= at) {
                    self.begin(EndReason::Timeout);
                }
            }
            Phase::Asked(until) if now >= until => {
                self.phase = Phase::Killing(now, Duration::from_millis(2));
            }
            Phase::Asked(_) | Phase::Killing(..) => {}
        }
        if let Phase::Killing(next, pause) = self.phase
            && now >= next
        {
            self.launched.hold.kill();
            self.phase = Phase::Killing(Instant::now() + pause, (pause * 2).min(Duration::from_millis(100)));
        }
        if !self.uncertain && self.cleanup_until.is_some_and(|until| now >= until) {
            // The host need not wait any longer; this process goes on, with the lease and the marker.
            self.uncertain = true;
            self.verdict(
                false,
                Some("processes of the tree were still there at the cleanup deadline".into()),
            );
        }
    }

    fn timeout_at(&self) -> Option<Instant> {
        self.run
            .start
            .timeout_ms
            .and_then(|millis| self.begun.checked_add(Duration::from_millis(millis)))
    }

    /// Begins the ladder, once.
    fn begin(&mut self, reason: EndReason) {
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        self.reason = Some(reason);
        // A child still behind the gate gives up.
        self.launched.opener = None;
        // A tree at a limit gets no grace: it may be a storm, and everybody else on the machine waits.
        let asked = reason != EndReason::Limit;
        if asked {
            let spared = self.launched.hold.init();
            kill::signal_all(Signal::TERM, spared);
            kill::signal_all(Signal::CONT, spared);
        }
        let now = Instant::now();
        let grace = Duration::from_millis(self.run.start.grace_ms);
        let until = now.checked_add(grace).unwrap_or(now);
        self.phase = Phase::Asked(if asked { until } else { now });
        self.cleanup_until = until.checked_add(Duration::from_millis(self.run.start.cleanup_ms));
    }

    /// Sleeps until something happens, and takes it in.
    fn wait(&mut self, children: &OwnedFd) {
        let mut deadlines = Vec::with_capacity(4);
        match self.phase {
            Phase::Running => deadlines.extend([self.timeout_at(), Some(self.sampler.next())]),
            Phase::Asked(until) => deadlines.push(Some(until)),
            Phase::Killing(next, _) => deadlines.push(Some(next)),
        }
        if !self.uncertain {
            deadlines.push(self.cleanup_until);
        }
        let left = deadlines
            .into_iter()
            .flatten()
            .min()
            .map(|at| at.saturating_duration_since(Instant::now()));

        let channel = match &self.launched.hold {
            Hold::Namespace(namespace) => Some(namespace.channel.as_fd()),
            _ => None,
        };
        let sources: [(Option<BorrowedFd<'_>>, PollFlags); 5] = [
            (Some(children.as_fd()), PollFlags::IN),
            (self.socket.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (self.gate.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (self.guard_life.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (if self.root.is_none() { channel } else { None }, PollFlags::IN),
        ];
        let mut ready = [false; 5];
        let mut fds = Vec::with_capacity(5);
        let mut places = Vec::with_capacity(5);
        for (place, (fd, flags)) in sources.into_iter().enumerate() {
            if let Some(fd) = fd {
                fds.push(PollFd::from_borrowed_fd(fd, flags));
                places.push(place);
            }
        }
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        if poll(&mut fds, timeout.as_ref()).is_ok() {
            for (fd, place) in fds.iter().zip(places) {
                ready[place] = !fd.revents().is_empty();
            }
        }
        drop(fds);
        let [ended, host, gate, guard, init] = ready;
        if ended {
            // Empties the signal descriptor; the loop reaps.
            let mut buffer = [0_u8; 1024];
            let _ = rustix::io::read(children, &mut buffer);
        }
        if gate {
            self.pass_gate();
        }
        if init && self.hear_init() {
            // Init ends too: its end is the end of the tree, and no look at /proc is needed.
            self.reason.get_or_insert(EndReason::Natural);
            if matches!(self.phase, Phase::Running) {
                let now = Instant::now();
                let until = now + Duration::from_millis(self.run.start.grace_ms);
                self.phase = Phase::Asked(until);
                self.cleanup_until = until.checked_add(Duration::from_millis(self.run.start.cleanup_ms));
            }
        }
        if host {
            self.hear_host();
        }
        if guard {
            // Only the end of the guard makes this readable: the host will hear of it, nobody else may.
            self.guard_life = None;
            self.begin(EndReason::Cancelled);
        }
        if matches!(self.phase, Phase::Running) && self.sampler.exceeded(&self.launched.hold) {
            // What ended by itself meanwhile comes first.
            if !self.reap() && self.root.is_none() {
                self.begin(EndReason::Limit);
            }
        }
    }

    fn hear_host(&mut self) {
        let Some(socket) = &self.socket else { return };
        match protocol::receive::<ToSupervisor>(socket.as_fd()) {
            Ok((ToSupervisor::End(reason), _)) => {
                self.reap();
                let reason = if self.root.is_some() {
                    EndReason::Natural
                } else {
                    reason
                };
                self.begin(reason);
            }
            Err(_) => {
                // The host is gone (or speaks nonsense, which comes to the same): end the tree.
                self.socket = None;
                self.begin(EndReason::Cancelled);
            }
        }
    }

    /// The child executed its program, or could not.
    fn pass_gate(&mut self) {
        let Some(gate) = self.gate.take() else { return };
        let mut report = [0_u8; 5];
        let message = match rustix::io::read(&gate, &mut report) {
            Ok(5) => ToHost::SpawnFailed {
                step: Step::ALL.get(usize::from(report[0])).copied().unwrap_or(Step::Exec),
                errno: i32::from_le_bytes([report[1], report[2], report[3], report[4]]),
                tiers: self.tiers,
            },
            _ => ToHost::Started {
                root: self.launched.root,
                supervisor: self.me,
                tiers: self.tiers,
            },
        };
        self.say(&message);
    }

    fn verdict(&mut self, clean: bool, detail: Option<String>) {
        let (cpu_us, max_rss_bytes) = sys::children_usage();
        let message = ToHost::Verdict {
            root: self.root.unwrap_or(RootStatus::Unknown),
            reason: self.reason.unwrap_or(EndReason::Natural),
            clean,
            cpu_us,
            max_rss_bytes,
            duration_us: u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX),
            detail,
        };
        self.say(&message);
    }

    /// The tree is empty: everything kept for it goes.
    fn finish(&mut self) -> ! {
        self.pass_gate();
        self.launched.hold.remove();
        if let Some(dir) = self.run.marker_dir() {
            marker::forget(&Marker::file(&dir, self.run.guard));
        }
        if !self.uncertain {
            self.verdict(true, None);
        }
        sys::exit(EXIT_EMPTY)
    }
}

/// Whether a read would not block.
fn readable(fd: BorrowedFd<'_>) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0)
}
