//! The owner of all commands of one cell: starts them, ends them together, and knows which are proven gone.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::canceller::Canceller;
use crate::child::{Guard, GuardEnd, set_nonblocking};
use crate::error::Error;
use crate::identity::Identity;
use crate::lease;
use crate::marker::{self, Marker, RUN_VARIABLE};
use crate::outcome::Termination;
use crate::owner::{EXIT_EMPTY, EXIT_GUARDED, EXIT_UNUSED};
use crate::protocol::{self, FilePolicy, Reason, Start, ToHost, TreePolicy};
use crate::running::{First, Io, Pipes, Running};
use crate::spec::{Files, Overlay, Spec, Stdin, View};

/// Longest time a supervisor may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Size asked for the pipe of standard output, in bytes: fewer wake-ups on much output, and still within a core's cache.
/// A smaller one is as good, but slower.
const PIPE: usize = 256 << 10;

/// Owner of the commands of one cell. `Send + Sync`, cheap to clone; all clones are one owner.
///
/// Calls block: use them from threads that may (for tokio, `spawn_blocking`).
#[derive(Debug, Clone)]
pub struct Processes(Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    program: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
    /// The owner's own temporary directory, once a command needed one.
    temporary: OnceLock<PathBuf>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(dir) = self.temporary.get() {
            // What cannot be removed is a temporary file like others.
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    next: u64,
    live: HashMap<u64, Canceller>,
    unproven: Vec<Unproven>,
    started: u64,
    reaped: u64,
}

/// A tree whose end was not established when its command returned.
#[derive(Debug)]
pub(crate) struct Unproven {
    /// There until it is dropped.
    guard: Option<Guard>,
    pub(crate) end: Option<GuardEnd>,
    pub(crate) identity: Option<Identity>,
    pub(crate) marker_dir: Option<PathBuf>,
}

/// How many trees an owner started, and what is known of their end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Trees started.
    pub started: u64,
    /// Trees proven empty, their supervisor reaped.
    pub reaped: u64,
    /// Trees that have neither been proven empty nor are being driven.
    pub unproven: u64,
    /// Trees that run.
    pub live: u64,
}

impl Processes {
    /// An owner that starts commands through the supervisor at `program` (see [`crate::locate`]).
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Shared {
            program: program.into(),
            state: Mutex::default(),
            changed: Condvar::new(),
            temporary: OnceLock::new(),
        }))
    }

    /// Starts a command. When this returns, its program runs (or could not be executed, which [`Running::drive`] reports).
    ///
    /// # Errors
    /// [`Error::Closed`] after [`Self::close`]; [`Error::Invalid`] for a spec that cannot work; [`Error::Unsupported`] when
    /// a demanded tier is not to be had; otherwise what failed. Nothing is left running then.
    pub fn spawn(&self, mut spec: Spec) -> Result<Running, Error> {
        check(&spec)?;
        self.0.give_temporary(&mut spec)?;
        let canceller = Canceller::new()?;
        // Registered before anything is started: from here on `close` reaches it.
        let ticket = {
            let mut state = self.0.lock();
            if state.closed {
                return Err(Error::Closed);
            }
            state.next += 1;
            let number = state.next;
            state.live.insert(number, canceller.clone());
            Ticket {
                shared: Arc::clone(&self.0),
                number,
                settled: false,
            }
        };
        start(&self.0.program, spec, canceller, ticket)
    }

    /// Whether a private overlay over `root` can be had here, tried with its writes in fresh directories in `scratch` (which
    /// must exist, on the file system the real ones will be on). Costs one short command.
    ///
    /// # Errors
    /// As [`Self::spawn`], or when the directories cannot be made. "No" is not an error.
    pub fn can_overlay(&self, root: &Path, scratch: &Path) -> Result<bool, Error> {
        let name = format!("overlay-probe-{}", fresh_name());
        let place = scratch.join(name);
        let (upper, work) = (place.join("upper"), place.join("work"));
        for dir in [&place, &upper, &work] {
            std::fs::create_dir(dir).map_err(Error::io(format!("making {}", dir.display())))?;
        }
        let mut spec = Spec::new(["true"], root);
        spec.view = View::Overlay(Overlay {
            root: root.into(),
            upper,
            work,
            through: Vec::new(),
        });
        let ran = self.spawn(spec).map(|running| {
            let outcome = running.drive(Io::new(&mut std::io::sink(), &mut std::io::sink()));
            outcome.termination == Termination::Exited { code: 0 }
        });
        // The kernel leaves a directory without permissions in the work directory; what stays is the scratch's owner's.
        let _ = std::fs::remove_dir(place.join("work/work"));
        let _ = std::fs::remove_dir_all(&place);
        ran
    }

    /// Refuses new commands and cancels all that run, in parallel. Does not wait.
    pub fn close(&self) {
        self.end_all(Reason::Cancelled, true);
    }

    /// Cancels all that run for this reason, without closing. Does not wait.
    pub fn cancel_all(&self, reason: Reason) {
        self.end_all(reason, false);
    }

    fn end_all(&self, reason: Reason, close: bool) {
        let mut state = self.0.lock();
        state.closed |= close;
        for canceller in state.live.values() {
            canceller.cancel(reason);
        }
    }

    /// Waits until no command is driven any more and every tree is proven empty, at most until `deadline`.
    #[must_use]
    pub fn wait_empty(&self, deadline: Instant) -> Counts {
        let mut state = self.0.lock();
        loop {
            state.prove();
            let left = deadline.saturating_duration_since(Instant::now());
            if (state.live.is_empty() && state.unproven.is_empty()) || left.is_zero() {
                return state.counts();
            }
            // Unproven trees have nobody who tells of their end.
            let nap = if state.unproven.is_empty() {
                left
            } else {
                left.min(Duration::from_millis(5))
            };
            state = self
                .0
                .changed
                .wait_timeout(state, nap)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// What is known now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut state = self.0.lock();
        state.prove();
        state.counts()
    }
}

impl Shared {
    /// Gives a confined command a place for temporary files when its own is not writable as a whole, which is so where the
    /// store lies in it: a private directory that lives as long as this owner.
    fn give_temporary(&self, spec: &mut Spec) -> Result<(), Error> {
        let Files::Landlock { writable, .. } = &mut spec.files else {
            return Ok(());
        };
        let own = spec
            .env
            .iter()
            .rev()
            .find(|(name, value)| name == "TMPDIR" && !value.is_empty());
        let own = own.map_or_else(|| PathBuf::from("/tmp"), |(_, value)| PathBuf::from(value));
        let own = std::fs::canonicalize(&own).unwrap_or(own);
        if writable.iter().any(|path| own.starts_with(path)) {
            return Ok(());
        }
        let dir = match self.temporary.get() {
            Some(dir) => dir,
            None => {
                let dir = std::env::temp_dir().join(format!("zero-run-{}", fresh_name()));
                let failed = || Error::io(format!("making {}", dir.display()));
                std::fs::DirBuilder::new().mode(0o700).create(&dir).map_err(failed())?;
                let dir = std::fs::canonicalize(&dir).map_err(failed())?;
                // Another thread may have been first; then its directory is used and this one goes.
                if let Err(dir) = self.temporary.set(dir) {
                    let _ = std::fs::remove_dir(dir);
                }
                self.temporary
                    .get()
                    .ok_or_else(|| Error::Supervisor("no temporary directory".into()))?
            }
        };
        writable.push(dir.clone());
        spec.env.push(("TMPDIR".into(), dir.clone().into_os_string()));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change of the state is complete at once, so a panic elsewhere left it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn counts(&self) -> Counts {
        Counts {
            started: self.started,
            reaped: self.reaped,
            unproven: self.unproven.len() as u64,
            live: self.live.len() as u64,
        }
    }

    /// Looks again at every unproven tree.
    fn prove(&mut self) {
        let before = self.unproven.len();
        self.unproven.retain_mut(|tree| !tree.is_empty());
        self.reaped += (before - self.unproven.len()) as u64;
    }
}

impl Unproven {
    /// Wakes the guard, should the command have stopped it.
    pub(crate) fn wake(&self) {
        if let Some(guard) = &self.guard {
            guard.wake();
        }
    }

    /// Waits for the guard's end, at most so long.
    pub(crate) fn reap(&mut self, patience: Duration) -> Option<GuardEnd> {
        if self.end.is_none() {
            self.end = self.guard.as_ref().and_then(|guard| guard.reap(patience));
        }
        self.end
    }

    /// Whether the tree is proven empty; kills what its dead supervisors left where that can be identified.
    pub(crate) fn is_empty(&mut self) -> bool {
        if self.end.is_none() {
            self.wake();
            self.reap(Duration::ZERO);
        }
        match self.end {
            None => false,
            Some(GuardEnd::Exited(EXIT_EMPTY | EXIT_GUARDED | EXIT_UNUSED)) => true,
            Some(_) => self.by_marker(),
        }
    }

    /// The guard died in another way; its supervisor may live. The marker says what to look for.
    fn by_marker(&self) -> bool {
        let (Some(dir), Some(identity)) = (&self.marker_dir, self.identity) else {
            return false;
        };
        let file = Marker::file(dir, identity);
        let Ok(live) = marker::blocking(dir) else { return false };
        let Some(tree) = live.iter().find(|tree| tree.file == file) else {
            return true;
        };
        tree.kill();
        false
    }
}

/// Guards nobody waits for any more, kept only to be reaped when they end.
static ABANDONED: Mutex<Vec<Guard>> = Mutex::new(Vec::new());

fn reap_abandoned() {
    let mut guards = ABANDONED.lock().unwrap_or_else(PoisonError::into_inner);
    guards.retain(|guard| guard.reap(Duration::ZERO).is_none());
}

impl Drop for Unproven {
    fn drop(&mut self) {
        if let (None, Some(guard)) = (self.end, self.guard.take()) {
            ABANDONED.lock().unwrap_or_else(PoisonError::into_inner).push(guard);
            reap_abandoned();
        }
    }
}

/// The place of one command among its owner's; given back exactly once.
#[derive(Debug)]
pub(crate) struct Ticket {
    shared: Arc<Shared>,
    number: u64,
    settled: bool,
}

impl Ticket {
    fn mark_started(&self) {
        self.shared.lock().started += 1;
    }

    /// The command never started anything.
    fn forget(mut self) {
        self.settled = true;
        self.shared.lock().live.remove(&self.number);
        self.shared.changed.notify_all();
    }

    /// The command is over; `left` is its tree when that is not proven empty.
    pub(crate) fn settle(mut self, left: Option<Unproven>) {
        self.settled = true;
        let mut state = self.shared.lock();
        state.live.remove(&self.number);
        match left {
            Some(tree) => state.unproven.push(tree),
            None => state.reaped += 1,
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.settled {
            self.shared.lock().live.remove(&self.number);
            self.shared.changed.notify_all();
        }
    }
}

fn check(spec: &Spec) -> Result<(), Error> {
    let invalid = |field, why: &str| Err(Error::Invalid { field, why: why.into() });
    let has_nul = |text: &OsString| text.as_bytes().contains(&0);
    if spec.argv.first().is_none_or(|program| program.is_empty()) {
        return invalid("argv", "needs the name of a program");
    }
    if spec.argv.iter().any(has_nul) {
        return invalid("argv", "must not hold a NUL byte");
    }
    if !spec.cwd.is_absolute() || spec.cwd.as_os_str().as_bytes().contains(&0) {
        return invalid("cwd", "must be an absolute path without a NUL byte");
    }
    let bad = |(name, value): &(OsString, OsString)| {
        name.is_empty() || has_nul(name) || has_nul(value) || name.as_bytes().contains(&b'=')
    };
    if spec.env.iter().any(bad) {
        return invalid(
            "env",
            "names must not be empty nor hold `=`, and nothing may hold a NUL byte",
        );
    }
    if let View::Overlay(overlay) = &spec.view {
        let outside = |path: &PathBuf| {
            path.components()
                .any(|part| !matches!(part, std::path::Component::Normal(_)))
        };
        if [&overlay.root, &overlay.upper, &overlay.work]
            .into_iter()
            .any(|path| !path.is_absolute())
        {
            return invalid("view", "root, upper and work must be absolute paths");
        }
        if overlay.through.iter().any(outside) {
            return invalid("view.through", "paths must lie beneath the workspace, without `..`");
        }
    }
    if spec.limits.processes == 0 {
        return invalid("limits.processes", "must be at least 1");
    }
    if spec.tree.wanted.is_empty() {
        return invalid(
            "tree.wanted",
            "must name at least one of cgroup, pid_namespace, rlimits",
        );
    }
    Ok(())
}

fn start(program: &Path, spec: Spec, canceller: Canceller, ticket: Ticket) -> Result<Running, Error> {
    let (socket, theirs) = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|error| Error::io("making a socket pair")(error.into()))?;
    let (pipes, far) = Pipes::open(&spec.stdin)?;
    reap_abandoned();
    let guard = Guard::start(program, theirs)?;
    let mut left = Unproven {
        guard: Some(guard),
        end: None,
        identity: None,
        marker_dir: spec.marker_dir.clone(),
    };

    let message = message(&spec);
    let mut fds = vec![far[0].as_fd(), far[1].as_fd(), far[2].as_fd()];
    if let Some(lease) = &spec.lease {
        fds.push(lease.as_fd());
    }
    let answer = converse(&socket, &message, &fds, &mut left.identity);
    drop(far);
    let first = match answer {
        Ok(ToHost::Started {
            root,
            supervisor,
            tiers,
        }) => First::Started {
            root,
            supervisor,
            tiers,
        },
        Ok(ToHost::SpawnFailed { step, errno, tiers }) => First::SpawnFailed { step, errno, tiers },
        other => {
            // The end of the socket makes the supervisor end whatever there is.
            drop(socket);
            left.reap(spec.grace + spec.cleanup + Duration::from_secs(1));
            let unused = left.end == Some(GuardEnd::Exited(EXIT_UNUSED));
            if other.is_err() && left.identity.is_some() && !unused {
                // It had the start message and fell silent, perhaps killed by the very command: that is no error of
                // starting but a command of which nothing is known.
                ticket.mark_started();
                return Ok(Running::new(spec, None, pipes, left, canceller, ticket, First::Lost));
            }
            drop(pipes);
            if left.is_empty() {
                ticket.forget();
            } else {
                ticket.mark_started();
                ticket.settle(Some(left));
            }
            return Err(match other {
                Ok(ToHost::Refused {
                    detail,
                    unsupported: true,
                }) => Error::Unsupported(detail),
                Ok(ToHost::Refused { detail, .. }) => Error::Supervisor(detail),
                Ok(_) => Error::Supervisor("unexpected first answer".into()),
                Err(error) => error,
            });
        }
    };
    ticket.mark_started();
    Ok(Running::new(spec, Some(socket), pipes, left, canceller, ticket, first))
}

/// Says what to run and hears the first two answers: who the supervisor is, and whether the program runs.
fn converse(
    socket: &OwnedFd,
    message: &Start,
    fds: &[std::os::fd::BorrowedFd<'_>],
    identity: &mut Option<Identity>,
) -> Result<ToHost, Error> {
    for side in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(socket, side, Some(ANSWER))
            .map_err(|error| Error::io("setting a socket's time limit")(error.into()))?;
    }
    let sent = protocol::send(socket.as_fd(), message, fds);
    // Heard first: a supervisor of another version says so, and then closes.
    match protocol::receive::<ToHost>(socket.as_fd())?.0 {
        ToHost::Hello { guard } => *identity = Some(guard),
        other => return Ok(other),
    }
    let answer = protocol::receive::<ToHost>(socket.as_fd());
    match (sent, answer) {
        (_, Ok((answer, _))) => Ok(answer),
        (Err(error), Err(_)) | (Ok(()), Err(error)) => Err(error.into()),
    }
}

/// The start message of a spec, with the variables that tell a command's descendants where they belong.
fn message(spec: &Spec) -> Start {
    let mut env: Vec<(Vec<u8>, Vec<u8>)> = Vec::with_capacity(spec.env.len() + 2);
    let mut set = |name: &[u8], value: &[u8]| {
        env.retain(|(is, _)| is != name);
        env.push((name.to_vec(), value.to_vec()));
    };
    for (name, value) in &spec.env {
        set(name.as_bytes(), value.as_bytes());
    }
    set(RUN_VARIABLE.as_bytes(), fresh_name().as_bytes());
    if let Some(lease) = &spec.lease {
        set(lease::VARIABLE.as_bytes(), lease::variable(lease).as_bytes());
    }
    let bytes = |path: &PathBuf| path.as_os_str().as_bytes().to_vec();
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Start {
        argv: spec.argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
        env,
        cwd: bytes(&spec.cwd),
        view: match &spec.view {
            View::Live => protocol::View::Live,
            View::Overlay(overlay) => protocol::View::Overlay {
                root: bytes(&overlay.root),
                upper: bytes(&overlay.upper),
                work: bytes(&overlay.work),
                through: overlay.through.iter().map(bytes).collect(),
            },
        },
        files: match &spec.files {
            Files::Open => FilePolicy::Open,
            Files::Landlock { writable, required } => FilePolicy::Landlock {
                writable: writable.iter().map(bytes).collect(),
                required: *required,
            },
        },
        tree: TreePolicy {
            wanted: spec.tree.wanted.clone(),
        },
        processes: spec.limits.processes,
        timeout_ms: spec.timeout.map(millis),
        grace_ms: millis(spec.grace),
        cleanup_ms: millis(spec.cleanup),
        marker_dir: spec.marker_dir.as_ref().map(bytes),
        lease: spec.lease.is_some(),
    }
}

/// A name no other run of this boot has.
fn fresh_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    format!(
        "{:x}-{:x}-{:x}",
        std::process::id(),
        now.as_nanos(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

impl Pipes {
    /// The host's ends, and the three descriptors for the command.
    fn open(stdin: &Stdin) -> Result<(Self, [OwnedFd; 3]), Error> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|error| Error::io("making a pipe")(error.into()));
        let (stdout, stdout_far) = pipe()?;
        let (stderr, stderr_far) = pipe()?;
        // Refused above the user's quota of pipe pages; the default size does then.
        let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE);
        let (near, far) = match stdin {
            Stdin::Null => {
                let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                    .map_err(|error| Error::io("opening /dev/null")(error.into()))?;
                (None, null)
            }
            Stdin::Bytes(_) | Stdin::Reader(_) => {
                let (far, near) = pipe()?;
                (Some(near), far)
            }
        };
        for fd in [Some(&stdout), Some(&stderr), near.as_ref()].into_iter().flatten() {
            set_nonblocking(fd).map_err(Error::io("setting up a pipe"))?;
        }
        Ok((
            Self {
                stdin: near,
                stdout: Some(stdout),
                stderr: Some(stderr),
            },
            [far, stdout_far, stderr_far],
        ))
    }
}
