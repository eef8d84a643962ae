//! The watcher: the thread that called [`run`], which waits for the frame and stops it when it must.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use zero_contracts::{CancelToken, Error, ErrorKind, Operation};

use super::limits::{Shared, Trip, leave_behind};
use super::spec::{CallHandler, FrameOutcome, FrameSpec, FrameUsage};
use super::{driver, failure};

/// What a frame's thread tells its watcher.
pub(super) enum FromFrame {
    /// The cell has ended; the thread still has to end.
    Ended(Box<Ended>),
    /// V8 is out of memory for good and the thread is parked.
    OutOfMemory,
}

/// How a cell ended, as its thread saw it.
pub(super) struct Ended {
    pub settled: Result<Option<String>, Error>,
    pub pending: Vec<Operation>,
    pub cpu: Duration,
}

/// How often the host's token, and the mark of a crash, are looked at: they wake nobody.
const POLL: Duration = Duration::from_millis(5);

/// How often a running cell's heap is looked at; collections look at it, too.
const HEAP_LOOK: Duration = Duration::from_millis(50);

/// CPU time that a frame may spend on ending after it was told to. V8's long native calls look for a stop seldom or never; who
/// waits for the cell is not to wait for them.
const ABANDON_CPU: Duration = Duration::from_secs(2);

/// How long a frame may take to end in any case: on a machine that is busy, CPU time comes slowly.
const ABANDON: Duration = Duration::from_secs(20);

/// Stack of a frame's thread: V8 uses about 1 MiB of it, the rest is for what V8 does not count.
const STACK: usize = 4 << 20;

/// Runs one cell to its end and takes everything away again. Blocks the calling thread, which is the frame's watchdog.
///
/// The frame ends at the earliest of its wall budget and the token's deadline (`deadline`), or when the token is cancelled
/// (`cancelled`), or when the cell settles or spends another budget (`budget`). See [`super`] for what is promised.
pub fn run(spec: FrameSpec, handler: Arc<dyn CallHandler>, cancel: &CancelToken) -> FrameOutcome {
    let start = Instant::now();
    let deadline = [start.checked_add(spec.budgets.wall), cancel.deadline()]
        .into_iter()
        .flatten()
        .min();
    let shared = Arc::new(Shared::new(spec.budgets.clone(), deadline));
    let calls = cancel.child(deadline);
    let (to_watcher, from_frame) = channel();
    let thread = {
        let (shared, calls) = (shared.clone(), calls.clone());
        std::thread::Builder::new()
            .name("zero-frame".into())
            .stack_size(STACK)
            .spawn(move || {
                driver::drive(&spec, handler, &shared, &calls, to_watcher);
            })
    };
    let watcher = Watcher {
        start,
        deadline,
        shared,
        cancel,
        calls,
    };
    match thread {
        Ok(thread) => watcher.watch(thread, &from_frame),
        Err(error) => watcher.outcome(
            Ended {
                settled: Err(no_thread(&error)),
                pending: Vec::new(),
                cpu: Duration::ZERO,
            },
            false,
        ),
    }
}

fn no_thread(error: &io::Error) -> Error {
    Error::new(
        ErrorKind::Busy,
        format!("the system gave no thread for the frame: {error}"),
    )
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic").to_owned()
}

struct Watcher<'a> {
    start: Instant,
    deadline: Option<Instant>,
    shared: Arc<Shared>,
    cancel: &'a CancelToken,
    calls: CancelToken,
}

impl Watcher<'_> {
    fn watch(&self, thread: JoinHandle<()>, from_frame: &Receiver<FromFrame>) -> FrameOutcome {
        let clock = cpu::Clock::of(&thread);
        let mut stopped_at: Option<(Instant, Duration)> = None;
        let stop = || Some((Instant::now(), clock.now().unwrap_or_default()));
        let mut heap_seen = self.start;
        let mut ended: Option<Ended> = None;
        loop {
            match from_frame.recv_timeout(self.patience(&clock, stopped_at.map(|(at, _)| at))) {
                Ok(FromFrame::Ended(how)) => {
                    ended = Some(*how);
                    // Nothing of the cell runs any more; what is left is to take the isolate and the blocking pool down.
                    stopped_at = stop();
                }
                Ok(FromFrame::OutOfMemory) => return self.give_up(thread, ended, &clock, Trip::Heap),
                Err(RecvTimeoutError::Timeout) if self.shared.crashed.load(Ordering::Acquire) => {
                    return self.give_up(thread, ended, &clock, Trip::Crash);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some((at, cpu)) = stopped_at {
                        let spent = clock.now().unwrap_or_default().saturating_sub(cpu);
                        if at.elapsed() >= ABANDON || spent >= ABANDON_CPU {
                            let why = self.shared.tripped().unwrap_or(Trip::Deadline);
                            return self.give_up(thread, ended, &clock, why);
                        }
                    } else if let Some(why) = self.must_stop(&clock) {
                        stopped_at = stop();
                        self.calls.cancel();
                        self.shared.trip(why);
                    } else if heap_seen.elapsed() >= HEAP_LOOK {
                        heap_seen = Instant::now();
                        self.shared.ask_for_heap();
                    }
                }
                // The thread has dropped its end: it is gone but for its last instructions.
                Err(RecvTimeoutError::Disconnected) => {
                    let failed = thread.join().err().map(|panic| panic_text(&*panic));
                    let ended = ended.unwrap_or_else(|| Ended {
                        settled: Err(Error::new(
                            ErrorKind::Internal,
                            format!("the frame's thread failed: {}", failed.unwrap_or_default()),
                        )),
                        pending: Vec::new(),
                        cpu: Duration::ZERO,
                    });
                    return self.outcome(ended, false);
                }
            }
        }
    }

    fn must_stop(&self, clock: &cpu::Clock) -> Option<Trip> {
        if self.cancel.is_cancelled() {
            Some(Trip::Cancelled)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(Trip::Deadline)
        } else if clock.now().is_some_and(|used| used >= self.shared.budgets.cpu) {
            Some(Trip::Cpu)
        } else {
            None
        }
    }

    /// How long nothing can happen that the frame does not tell itself.
    fn patience(&self, clock: &cpu::Clock, stopped_at: Option<Instant>) -> Duration {
        if let Some(at) = stopped_at {
            // A crash tells nobody.
            return ABANDON
                .saturating_sub(at.elapsed())
                .clamp(Duration::from_millis(1), POLL);
        }
        let mut wait = POLL;
        if let Some(deadline) = self.deadline {
            wait = wait.min(deadline.saturating_duration_since(Instant::now()));
        }
        // One thread spends CPU time no faster than time passes.
        if let Some(used) = clock.now() {
            wait = wait.min(self.shared.budgets.cpu.saturating_sub(used));
        }
        wait.max(Duration::from_micros(100))
    }

    /// Leaves the thread behind. Its calls are cancelled and nothing of the cell is admitted any more.
    fn give_up(&self, thread: JoinHandle<()>, ended: Option<Ended>, clock: &cpu::Clock, why: Trip) -> FrameOutcome {
        self.calls.cancel();
        self.shared.closed.store(true, Ordering::Release);
        let used = clock.now();
        leave_behind(thread);
        let ended = ended.unwrap_or_else(|| Ended {
            settled: Err(failure::trip_error(self.shared.tripped().unwrap_or(why))),
            pending: Vec::new(),
            cpu: used.unwrap_or_default(),
        });
        self.outcome(ended, true)
    }

    fn outcome(&self, ended: Ended, given_up: bool) -> FrameOutcome {
        use std::sync::atomic::Ordering::Acquire;
        let (console, console_omitted) = self
            .shared
            .console
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let usage = FrameUsage {
            wall: self.start.elapsed(),
            cpu: ended.cpu,
            heap_peak: self.shared.heap_peak.load(Acquire),
            array_buffer_peak: self.shared.buffers_peak.load(Acquire),
            calls: self.shared.calls(),
        };
        FrameOutcome {
            settled: ended.settled,
            console,
            console_omitted,
            usage,
            pending: ended.pending,
            given_up,
        }
    }
}

/// CPU time of another thread.
pub(super) mod cpu {
    use std::os::unix::thread::JoinHandleExt as _;
    use std::thread::JoinHandle;
    use std::time::Duration;

    /// The CPU clock of a thread that has not been joined.
    pub(in crate::frame) struct Clock(Option<libc::clockid_t>);

    impl Clock {
        pub(in crate::frame) fn of(thread: &JoinHandle<()>) -> Self {
            let mut id: libc::clockid_t = 0;
            // SAFETY: the handle has not been joined or detached, so its pthread is valid; `id` outlives the call.
            let failed = unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &raw mut id) };
            Self((failed == 0).then_some(id))
        }

        /// The time used so far; none when the thread has ended.
        pub(in crate::frame) fn now(&self) -> Option<Duration> {
            read(self.0?)
        }
    }

    /// CPU time of the calling thread.
    pub(in crate::frame) fn of_this_thread() -> Duration {
        read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default()
    }

    fn read(clock: libc::clockid_t) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` outlives the call; an id of an ended thread is refused by the system.
        let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
        (failed == 0).then(|| {
            Duration::new(
                u64::try_from(time.tv_sec).unwrap_or(0),
                u32::try_from(time.tv_nsec).unwrap_or(0),
            )
        })
    }
}
