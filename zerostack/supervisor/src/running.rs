//! One running command on the host's side: moves its bytes and waits for the verdict.
//!
//! One thread, one `poll`: standard input is written while both outputs are read, so no stream can block another. Memory
//! is one buffer, whatever the command prints. The outputs are read while the tree is being ended, and drained to their
//! end once it is gone; nobody of the tree can hold them open then.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::canceller::Canceller;
use crate::child::GuardEnd;
use crate::identity::Identity;
use crate::outcome::{Cleanup, Outcome, Stream, StreamBytes, Termination};
use crate::owner::EXIT_EMPTY;
use crate::processes::{Ticket, Unproven};
use crate::protocol::{self, CountTier, EndReason, FileTier, RootStatus, Step, Tiers, ToHost, ToSupervisor, TreeTier};
use crate::spec::{Mounted, Spec, Stdin};

/// Size of the one buffer.
const BUFFER: usize = 256 << 10;

/// Time beyond grace and cleanup deadline after which the host believes a silent supervisor to be stuck.
const SLACK: Duration = Duration::from_secs(2);

/// How often [`Io::poll`] is asked.
const POLL: Duration = Duration::from_millis(10);

/// The host's ends of a command's streams.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
}

/// What is claimed of a command whose supervisor fell silent: nothing.
const UNKNOWN: Tiers = Tiers {
    tree: TreeTier::Rlimits,
    files: FileTier::None,
    signals_scoped: false,
    count: CountTier::Sampled,
};

/// How a command began.
pub(crate) enum First {
    /// Its supervisor fell silent after it had been told to start.
    Lost,
    /// Its program runs.
    Started {
        root: Identity,
        supervisor: Identity,
        tiers: Tiers,
    },
    /// Its program could not be executed.
    SpawnFailed { step: Step, errno: i32, tiers: Tiers },
}

/// What is called with every kept piece of output.
pub type OnOutput<'a> = dyn FnMut(Stream, &[u8]) + 'a;

/// Where the bytes of a command go, and who may end it from the driving thread.
pub struct Io<'a> {
    /// Gets every kept byte of standard output, in order.
    pub stdout: &'a mut dyn Write,
    /// Gets every kept byte of standard error, in order.
    pub stderr: &'a mut dyn Write,
    /// Called after each piece was written to its sink.
    pub on_output: Option<&'a mut OnOutput<'a>>,
    /// Asked about a hundred times a second whether to end the command.
    pub poll: Option<&'a mut dyn FnMut() -> Option<EndReason>>,
}

impl<'a> Io<'a> {
    /// Two sinks and nothing else.
    pub fn new(stdout: &'a mut dyn Write, stderr: &'a mut dyn Write) -> Self {
        Self {
            stdout,
            stderr,
            on_output: None,
            poll: None,
        }
    }
}

/// A started command. Must be [driven](Self::drive); dropped before, its tree is ended by its supervisor.
#[derive(Debug)]
pub struct Running {
    spec: Spec,
    socket: Option<OwnedFd>,
    pipes: Pipes,
    // Both are there until `drive` or `drop` takes them.
    left: Option<Unproven>,
    ticket: Option<Ticket>,
    canceller: Canceller,
    begun: Instant,
    tiers: Tiers,
    root: Option<Identity>,
    supervisor: Option<Identity>,
    spawn_failed: Option<(Step, i32)>,
    pub(crate) mounted: Option<Arc<Mounted>>,
}

impl Running {
    pub(crate) fn new(
        spec: Spec,
        socket: Option<OwnedFd>,
        pipes: Pipes,
        left: Unproven,
        canceller: Canceller,
        ticket: Ticket,
        first: First,
    ) -> Self {
        let (tiers, root, supervisor, spawn_failed) = match first {
            First::Started {
                root,
                supervisor,
                tiers,
            } => (tiers, Some(root), Some(supervisor), None),
            First::Lost => (UNKNOWN, None, None, None),
            First::SpawnFailed { step, errno, tiers } => (tiers, None, None, Some((step, errno))),
        };
        Self {
            spec,
            socket,
            pipes,
            left: Some(left),
            ticket: Some(ticket),
            canceller,
            begun: Instant::now(),
            tiers,
            root,
            supervisor,
            spawn_failed,
            mounted: None,
        }
    }

    /// The overlay that was mounted for this command ([`crate::View::Overlay`]), for others to join.
    #[must_use]
    pub fn mounted(&self) -> Option<Arc<Mounted>> {
        self.mounted.clone()
    }

    /// A handle that ends this command from another thread.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// The command's root process; `None` when its program could not be executed or nothing is known of it.
    #[must_use]
    pub fn root(&self) -> Option<Identity> {
        self.root
    }

    /// The supervisor proper; `None` when the program could not be executed or nothing is known of it.
    #[must_use]
    pub fn supervisor(&self) -> Option<Identity> {
        self.supervisor
    }

    /// The process the host started: the guard, parent of the supervisor.
    #[must_use]
    pub fn guard(&self) -> Option<Identity> {
        self.left.as_ref().and_then(|left| left.identity)
    }

    /// What the command runs under.
    #[must_use]
    pub fn tiers(&self) -> Tiers {
        self.tiers
    }

    /// Moves the command's bytes until its tree is gone (or could not be proven gone in time). Blocks.
    pub fn drive(mut self, io: Io<'_>) -> Outcome {
        Drive {
            running: &mut self,
            io,
            buffer: vec![0; BUFFER],
            pending: Vec::new(),
            written: 0,
            bytes: StreamBytes::default(),
            kept: StreamBytes::default(),
            whole: true,
            sink_error: None,
            asked: None,
            nudged: false,
            verdict: None,
        }
        .run()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The supervisor takes the end of the socket for the end of the host.
        self.socket = None;
        if let (Some(ticket), Some(left)) = (self.ticket.take(), self.left.take()) {
            ticket.settle(Some(left));
        }
    }
}

/// What the supervisor said last.
struct Verdict {
    root: RootStatus,
    reason: EndReason,
    clean: bool,
    cpu: Duration,
    max_rss_bytes: u64,
    duration: Duration,
    detail: Option<String>,
}

struct Drive<'a, 'io> {
    running: &'a mut Running,
    io: Io<'io>,
    buffer: Vec<u8>,
    /// Bytes of standard input read from the source and not yet written.
    pending: Vec<u8>,
    /// How many of them are written.
    written: usize,
    bytes: StreamBytes,
    kept: StreamBytes,
    whole: bool,
    sink_error: Option<io::Error>,
    /// When the supervisor was asked to end the tree.
    asked: Option<Instant>,
    /// Whether it was woken after it should have answered.
    nudged: bool,
    verdict: Option<Verdict>,
}

/// What a read of a pipe came to.
enum Piece {
    Some,
    Nothing,
    End,
}

impl Drive<'_, '_> {
    fn run(mut self) -> Outcome {
        while self.verdict.is_none() && self.running.socket.is_some() {
            if self.out_of_patience() {
                break;
            }
            self.turn();
        }
        self.settle()
    }

    /// When the supervisor must have answered, whatever the command does.
    fn answer_by(&self) -> Option<Instant> {
        let spec = &self.running.spec;
        let from = match (self.asked, spec.timeout) {
            (Some(asked), _) => asked,
            (None, Some(timeout)) => self.running.begun.checked_add(timeout)?,
            (None, None) => return None,
        };
        from.checked_add(spec.grace)?
            .checked_add(spec.cleanup)?
            .checked_add(SLACK)
    }

    fn out_of_patience(&mut self) -> bool {
        let Some(by) = self.answer_by() else { return false };
        let now = Instant::now();
        // The command may have stopped its supervisors.
        if !self.nudged && now + SLACK >= by {
            self.nudged = true;
            if let Some(left) = &self.running.left {
                left.wake();
            }
        }
        now >= by
    }

    fn end(&mut self, reason: EndReason) {
        if self.asked.is_some() {
            return;
        }
        self.asked = Some(Instant::now());
        if let Some(left) = &self.running.left {
            left.wake();
        }
        if let Some(socket) = &self.running.socket {
            // A supervisor that is gone is noticed by reading.
            let _ = protocol::send(socket.as_fd(), &ToSupervisor::End(reason), &[]);
        }
    }

    /// Waits for one event or the next deadline, and handles what there is.
    fn turn(&mut self) {
        let now = Instant::now();
        let mut timeout = self.answer_by().map(|by| {
            let by = if self.nudged {
                by
            } else {
                by.checked_sub(SLACK).unwrap_or(by)
            };
            by.saturating_duration_since(now)
        });
        if self.io.poll.is_some() && self.asked.is_none() {
            timeout = Some(timeout.map_or(POLL, |left| left.min(POLL)));
        }
        let timeout = timeout.and_then(|left| Timespec::try_from(left).ok());
        let ready = {
            let pipes = &self.running.pipes;
            let cancel = self.asked.is_none().then(|| self.running.canceller.as_fd());
            let sources = [
                (self.running.socket.as_ref().map(AsFd::as_fd), PollFlags::IN),
                (pipes.stdout.as_ref().map(AsFd::as_fd), PollFlags::IN),
                (pipes.stderr.as_ref().map(AsFd::as_fd), PollFlags::IN),
                (pipes.stdin.as_ref().map(AsFd::as_fd), PollFlags::OUT),
                (cancel, PollFlags::IN),
            ];
            let mut fds = Vec::with_capacity(5);
            let mut places = Vec::with_capacity(5);
            for (place, (fd, flags)) in sources.into_iter().enumerate() {
                if let Some(fd) = fd {
                    fds.push(PollFd::from_borrowed_fd(fd, flags));
                    places.push(place);
                }
            }
            let mut ready = [false; 5];
            if poll(&mut fds, timeout.as_ref()).is_ok() {
                for (fd, place) in fds.iter().zip(places) {
                    ready[place] = !fd.revents().is_empty();
                }
            }
            ready
        };
        let [socket, stdout, stderr, stdin, cancel] = ready;
        if stdout {
            self.read(Stream::Stdout);
        }
        if stderr {
            self.read(Stream::Stderr);
        }
        if stdin {
            self.write();
        }
        if socket {
            self.hear();
        }
        if cancel && let Some(reason) = self.running.canceller.reason() {
            self.end(reason);
        }
        if self.asked.is_none()
            && let Some(poll) = &mut self.io.poll
            && let Some(reason) = poll()
        {
            self.end(reason);
        }
    }

    fn hear(&mut self) {
        let Some(socket) = &self.running.socket else { return };
        match protocol::receive::<ToHost>(socket.as_fd()) {
            Ok((
                ToHost::Verdict {
                    root,
                    reason,
                    clean,
                    cpu_us,
                    max_rss_bytes,
                    duration_us,
                    detail,
                },
                _,
            )) => {
                self.verdict = Some(Verdict {
                    root,
                    reason,
                    clean,
                    cpu: Duration::from_micros(cpu_us),
                    max_rss_bytes,
                    duration: Duration::from_micros(duration_us),
                    detail,
                });
            }
            // A later version may say more.
            Ok(_) => {}
            Err(_) => self.running.socket = None,
        }
    }

    /// Reads one piece of a stream and passes it on.
    fn read(&mut self, stream: Stream) -> Piece {
        let pipe = match stream {
            Stream::Stdout => &mut self.running.pipes.stdout,
            Stream::Stderr => &mut self.running.pipes.stderr,
        };
        let Some(fd) = pipe else { return Piece::End };
        let count = match rustix::io::read(&*fd, &mut self.buffer) {
            Ok(0) => {
                *pipe = None;
                return Piece::End;
            }
            Ok(count) => count,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Piece::Nothing,
            Err(_) => {
                *pipe = None;
                self.whole = false;
                return Piece::End;
            }
        };
        let (total, kept, sink) = match stream {
            Stream::Stdout => (&mut self.bytes.stdout, &mut self.kept.stdout, &mut *self.io.stdout),
            Stream::Stderr => (&mut self.bytes.stderr, &mut self.kept.stderr, &mut *self.io.stderr),
        };
        *total += count as u64;
        let mut over = false;
        if self.sink_error.is_none() {
            let limit = self.running.spec.limits.output;
            let room = limit.saturating_sub(self.bytes.stdout + self.bytes.stderr - count as u64);
            let keep = usize::try_from(room).unwrap_or(usize::MAX).min(count);
            over = keep < count;
            if keep > 0 {
                match sink.write_all(&self.buffer[..keep]) {
                    Ok(()) => {
                        *kept += keep as u64;
                        if let Some(tell) = &mut self.io.on_output {
                            tell(stream, &self.buffer[..keep]);
                        }
                    }
                    Err(error) => self.sink_error = Some(error),
                }
            }
        }
        if self.sink_error.is_some() {
            self.whole = false;
            self.end(EndReason::Cancelled);
        } else if over {
            self.whole = false;
            self.end(EndReason::Limit);
        }
        Piece::Some
    }

    /// Writes one piece of standard input, or closes it at its end.
    fn write(&mut self) {
        const PIECE: usize = 64 << 10;
        if self.written == self.pending.len() {
            self.written = 0;
            self.pending.clear();
            match &mut self.running.spec.stdin {
                Stdin::Null => {}
                Stdin::Bytes(bytes) => std::mem::swap(bytes, &mut self.pending),
                Stdin::Reader(reader) => {
                    self.pending.resize(PIECE, 0);
                    let count = reader.read(&mut self.pending).unwrap_or(0);
                    self.pending.truncate(count);
                }
            }
            if self.pending.is_empty() {
                self.running.pipes.stdin = None;
                return;
            }
        }
        let Some(fd) = &self.running.pipes.stdin else { return };
        match rustix::io::write(fd, &self.pending[self.written..]) {
            Ok(count) => self.written += count,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            // The command does not read on: not an error, as in a shell's pipe.
            Err(_) => self.running.pipes.stdin = None,
        }
    }

    /// Reads what is left in the pipes. Once the tree is gone that is everything it ever wrote.
    fn drain(&mut self) {
        self.running.pipes.stdin = None;
        for stream in [Stream::Stdout, Stream::Stderr] {
            while matches!(self.read(stream), Piece::Some) {}
        }
    }

    fn settle(mut self) -> Outcome {
        let spec = &self.running.spec;
        let patience = spec.cleanup + spec.grace + Duration::from_secs(1);
        let mut left = self.running.left.take();
        let mut empty = false;
        let cleanup = match &self.verdict {
            Some(verdict) if verdict.clean => {
                // The last act of a supervisor with a clean verdict is to exit.
                let end = left.as_mut().and_then(|left| left.reap(patience));
                empty = true;
                match end {
                    Some(GuardEnd::Exited(EXIT_EMPTY) | GuardEnd::Unknown) => Cleanup::Clean,
                    _ => Cleanup::Uncertain {
                        detail: "the supervisor's guard was killed".into(),
                        empty,
                    },
                }
            }
            Some(verdict) => Cleanup::Uncertain {
                detail: verdict.detail.clone().unwrap_or_default(),
                empty,
            },
            None => {
                let silent = self.running.socket.is_some();
                let until = Instant::now() + if silent { Duration::ZERO } else { patience };
                self.running.socket = None;
                if let Some(left) = &mut left {
                    left.wake();
                    left.reap(until.saturating_duration_since(Instant::now()));
                    // Its guard, or whoever finds the marker, ends what the supervisor left.
                    empty = loop {
                        if left.is_empty() {
                            break true;
                        }
                        if Instant::now() >= until {
                            break false;
                        }
                        std::thread::sleep(Duration::from_millis(2));
                    };
                }
                let what = if silent {
                    "the supervisor did not answer"
                } else {
                    "the supervisor died"
                };
                Cleanup::Uncertain {
                    detail: what.into(),
                    empty,
                }
            }
        };
        self.drain();
        let drained = self.running.pipes.stdout.is_none() && self.running.pipes.stderr.is_none();
        if let Some(ticket) = self.running.ticket.take() {
            ticket.settle(if empty { None } else { left });
        }
        let duration = self.running.begun.elapsed();
        let (termination, reason) = self.termination();
        Outcome {
            termination,
            reason,
            // Where the tree is gone, an open pipe is held by a stranger it was given to, and holds nothing of the tree.
            complete: self.whole && (empty || drained),
            cleanup,
            bytes: self.bytes,
            kept: self.kept,
            duration: self.verdict.as_ref().map_or(duration, |verdict| verdict.duration),
            cpu: self.verdict.as_ref().map_or(Duration::ZERO, |verdict| verdict.cpu),
            max_rss_bytes: self.verdict.as_ref().map_or(0, |verdict| verdict.max_rss_bytes),
            tiers: self.running.tiers,
            sink_error: self.sink_error,
        }
    }

    fn termination(&self) -> (Termination, EndReason) {
        let reason = match (&self.verdict, self.asked, self.running.canceller.reason()) {
            (Some(verdict), ..) => verdict.reason,
            (None, Some(_), Some(reason)) => reason,
            (None, ..) => EndReason::Cancelled,
        };
        let termination = match (
            self.running.spawn_failed,
            self.verdict.as_ref().map(|verdict| verdict.root),
        ) {
            (Some((step, errno)), _) => {
                let detail = format!(
                    "{} `{}`: {}",
                    step.describe(),
                    self.running.spec.argv[0].display(),
                    io::Error::from_raw_os_error(errno)
                );
                Termination::SpawnFailed { step, errno, detail }
            }
            (None, Some(RootStatus::Exited(code))) => Termination::Exited { code },
            (None, Some(RootStatus::Signalled(signal))) => Termination::Signalled { signal },
            (None, Some(RootStatus::Unknown) | None) => Termination::Unknown,
        };
        (termination, reason)
    }
}
