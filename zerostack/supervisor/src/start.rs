//! Starting one command: from a spec to a running supervisor.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::canceller::Canceller;
use crate::child::{Guard, GuardEnd, set_nonblocking};
use crate::error::Error;
use crate::lease;
use crate::marker::RUN_VARIABLE;
use crate::owner::EXIT_UNUSED;
use crate::processes::{Ticket, Unproven, reap_abandoned};
use crate::protocol::{self, FilePolicy, Start, ToHost, ToSupervisor, TreePolicy, WireError};
use crate::running::{First, Pipes, Running};
use crate::spec::{Files, Mounted, Spec, Stdin, View};

/// Longest time a supervisor may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// How often a supervisor that does not answer is woken, should its command have stopped it.
const WAKE: Duration = Duration::from_millis(100);

/// Size asked for the pipe of standard output, in bytes: fewer wake-ups on much output, and still within a core's cache.
/// A smaller one is as good, but slower.
const PIPE: usize = 256 << 10;

/// Refuses a spec that cannot work, by field.
pub(crate) fn check(spec: &Spec) -> Result<(), Error> {
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

/// A supervisor that was started ahead and waits to be told its command. Dropped unused, it ends and is waited for.
#[derive(Debug)]
pub struct Ready {
    // All three are there until it is used or dropped.
    socket: Option<OwnedFd>,
    left: Option<Unproven>,
    ticket: Option<Ticket>,
    canceller: Canceller,
}

/// Longest time that an unused supervisor is waited for: it only has to see the end of its socket.
const UNUSED: Duration = Duration::from_secs(1);

impl Ready {
    /// Starts the supervisor.
    pub(crate) fn start(program: &Path, canceller: Canceller, ticket: Ticket) -> Result<Self, Error> {
        let (socket, theirs) = rustix::net::socketpair(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::STREAM,
            rustix::net::SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|error| Error::io("making a socket pair")(error.into()))?;
        reap_abandoned();
        let guard = Guard::start(program, theirs)?;
        Ok(Self {
            socket: Some(socket),
            left: Some(Unproven::new(guard)),
            ticket: Some(ticket),
            canceller,
        })
    }

    /// Starts the command, as [`crate::Processes::spawn`] does.
    ///
    /// # Errors
    /// Those of [`crate::Processes::spawn`].
    pub fn spawn(self, mut spec: Spec) -> Result<Running, Error> {
        check(&spec)?;
        if let Some(ticket) = &self.ticket {
            ticket.admit(&mut spec)?;
        }
        start(self, spec)
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        self.socket = None;
        if let Some(mut left) = self.left.take() {
            left.reap(UNUSED);
        }
        if let Some(ticket) = self.ticket.take() {
            ticket.forget();
        }
    }
}

/// Tells a supervisor what to run and waits until the command's program runs or could not be executed.
fn start(mut ready: Ready, spec: Spec) -> Result<Running, Error> {
    let (pipes, far) = Pipes::open(&spec.stdin)?;
    let canceller = ready.canceller.clone();
    let (Some(socket), Some(mut left), Some(ticket)) = (ready.socket.take(), ready.left.take(), ready.ticket.take())
    else {
        return Err(Error::Supervisor("a supervisor was used twice".into()));
    };
    left.marker_dir.clone_from(&spec.marker_dir);

    let message = message(&spec);
    let mut fds = vec![far[0].as_fd(), far[1].as_fd(), far[2].as_fd()];
    if let Some(lease) = &spec.lease {
        fds.push(lease.as_fd());
    }
    if let View::Mounted(mounted) = &spec.view {
        fds.push(mounted.mount.as_fd());
        fds.extend(mounted.user.as_ref().map(AsFd::as_fd));
    }
    let answer = converse(&socket, &message, &fds, &canceller, &mut left);
    drop(far);
    let (answer, mut namespaces) = match answer {
        Ok((answer, namespaces)) => (Ok(answer), namespaces.into_iter()),
        Err(error) => (Err(error), Vec::new().into_iter()),
    };
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
            left.wake();
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
    let mut running = Running::new(spec, Some(socket), pipes, left, canceller, ticket, first);
    running.mounted = namespaces.next().map(|mount| {
        Arc::new(Mounted {
            mount,
            user: namespaces.next(),
        })
    });
    Ok(running)
}

/// What a supervisor says, and the descriptors that come with it.
type Answer = (ToHost, Vec<OwnedFd>);

/// Says what to run and hears the first two answers: who the supervisor is, and whether the program runs.
fn converse(
    socket: &OwnedFd,
    message: &Start,
    fds: &[BorrowedFd<'_>],
    canceller: &Canceller,
    left: &mut Unproven,
) -> Result<Answer, Error> {
    for side in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(socket, side, Some(ANSWER))
            .map_err(|error| Error::io("setting a socket's time limit")(error.into()))?;
    }
    let sent = protocol::send(socket.as_fd(), message, fds);
    // Heard first: a supervisor of another version says so, and then closes.
    match answer(socket, canceller, left)? {
        (ToHost::Hello { guard }, _) => left.identity = Some(guard),
        other => return Ok(other),
    }
    match (sent, answer(socket, canceller, left)) {
        (_, Ok(answer)) => Ok(answer),
        (Err(error), Err(_)) | (Ok(()), Err(error)) => Err(error.into()),
    }
}

/// Waits for one message; passes a cancellation on, and wakes a supervisor that the command may have stopped already.
fn answer(socket: &OwnedFd, canceller: &Canceller, left: &Unproven) -> Result<Answer, WireError> {
    let until = Instant::now() + ANSWER;
    let mut passed = false;
    loop {
        let now = Instant::now();
        if now >= until {
            return Err(WireError::Closed);
        }
        let mut fds = vec![PollFd::new(socket, PollFlags::IN)];
        if !passed {
            fds.push(PollFd::from_borrowed_fd(canceller.as_fd(), PollFlags::IN));
        }
        let nap = Timespec::try_from(WAKE.min(until - now)).ok();
        // An interrupted wait shows nothing and is begun again.
        let count = poll(&mut fds, nap.as_ref()).unwrap_or(0);
        if count == 0 {
            left.wake();
            continue;
        }
        if !fds[0].revents().is_empty() {
            return protocol::receive::<ToHost>(socket.as_fd());
        }
        if let Some(reason) = canceller.reason() {
            passed = true;
            // A supervisor that is gone is noticed by reading.
            let _ = protocol::send(socket.as_fd(), &ToSupervisor::End(reason), &[]);
        }
    }
}

/// Leaves of each variable what was said last, where it was said.
fn last_of_each_name(env: &mut Vec<(Vec<u8>, Vec<u8>)>) {
    let mut said = HashSet::with_capacity(env.len());
    let mut last: Vec<bool> = env.iter().rev().map(|(name, _)| said.insert(name.clone())).collect();
    env.retain(|_| last.pop().unwrap_or(true));
}

/// The start message of a spec, with the variables that tell a command's descendants where they belong.
fn message(spec: &Spec) -> Start {
    let mut env: Vec<(Vec<u8>, Vec<u8>)> = Vec::with_capacity(spec.env.len() + 2);
    let mut set = |name: &[u8], value: &[u8]| env.push((name.to_vec(), value.to_vec()));
    for (name, value) in &spec.env {
        set(name.as_bytes(), value.as_bytes());
    }
    set(RUN_VARIABLE.as_bytes(), fresh_name().as_bytes());
    if let Some(lease) = &spec.lease {
        set(lease::VARIABLE.as_bytes(), lease::variable(lease).as_bytes());
    }
    last_of_each_name(&mut env);
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
            View::Mounted(mounted) => protocol::View::Mounted {
                user: mounted.user.is_some(),
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
pub(crate) fn fresh_name() -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_variables_said_twice_the_last_counts_however_many_there_are() {
        let mut slowly: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut env = Vec::new();
        for n in 0..500_u32 {
            let pair = ((n * 37 % 101).to_string().into_bytes(), n.to_string().into_bytes());
            slowly.retain(|(name, _)| *name != pair.0);
            slowly.push(pair.clone());
            env.push(pair);
        }
        last_of_each_name(&mut env);
        assert_eq!(env, slowly);
        // Comparing each with each would take as many squared.
        let many = 1 << 16;
        let mut env: Vec<_> = (0..many).map(|n| (n.to_string().into_bytes(), Vec::new())).collect();
        last_of_each_name(&mut env);
        assert_eq!(env.len(), many);
    }
}
