//! `z.run`: a command on the staged tree, owned by a supervisor until its whole tree is gone.
//!
//! Runs that start while another still runs are a group. In the tier `private` a group shares one view: what is staged is
//! laid into its upper layer, the first run's supervisor mounts it, the others join. In the tier `baseline` the first run
//! publishes what is staged into the live tree (uncommitted, journalled) and takes the baseline. Either way the last one
//! to end has the changes captured as effects of the cell. Edits made meanwhile stay staged and are seen by the next group.
//! The first group of a cell decides the tier for all.

mod output;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Scope;
use std::time::{Duration, Instant};

use zero_contracts::event::ProcessVerdict;
use zero_contracts::files::CommandView;
use zero_contracts::read::EntryKind;
use zero_contracts::response::CaptureTier;
use zero_contracts::run::{Cleanup, Command, EndReason, RunRequest, RunResult, Streams, Termination};
use zero_contracts::{
    CancelToken, CellId, Content, Epoch, Error, ErrorKind, Handle, HandleKind, Result, WorkspacePath,
};
use zero_supervisor as supervisor;
use zero_supervisor::{Io, Mounted, Overlay, Processes, Ready, Running, Spec, Stdin, View};

use self::output::{Shown, Sink};
use super::reply;
use crate::cell::{Cell, lock};
use crate::config::{Capture, Commands, Output, OutputStream};
use crate::frame::CallReply;
use crate::kernel::Kernel;

/// Tokens that hold the mark of a cut, whatever a stream holds: fewer would fail the call of a command that has run.
const LEAST_SHOWN: u64 = 32;

/// How long a tree may take to go after its grace.
const CLEANUP: Duration = Duration::from_secs(5);

/// How long what a command did is looked at when the cell's time is up already.
const LAST_LOOK: Duration = Duration::from_millis(150);

/// The commands of one cell.
#[derive(Default)]
pub struct Runs {
    owner: Mutex<Owner>,
    group: Mutex<Group>,
    started: AtomicU64,
}

#[derive(Default)]
struct Owner {
    closed: bool,
    processes: Option<Processes>,
}

/// Runs that share one baseline.
#[derive(Default)]
struct Group {
    active: u64,
    broken: Option<Error>,
    tier: Option<CaptureTier>,
    view: Option<CommandView>,
    /// The group's view, once it is mounted.
    mounted: Option<Arc<Mounted>>,
}

impl Runs {
    /// Ends every command and starts no further one.
    pub fn close(&self) {
        let mut owner = lock(&self.owner);
        owner.closed = true;
        if let Some(processes) = &owner.processes {
            processes.close();
        }
    }

    /// Numbers a command that is about to run.
    fn count(&self) -> u64 {
        self.started.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits until every tree is proven empty.
    pub fn wait_empty(&self, grace: Duration) -> supervisor::Counts {
        let processes = lock(&self.owner).processes.clone();
        processes.map_or_else(supervisor::Counts::default, |processes| {
            processes.wait_empty(Instant::now() + grace + CLEANUP)
        })
    }

    /// Returns why the effects of a command could not be captured: the cell can only be restored then.
    pub fn broken(&self) -> Option<Error> {
        lock(&self.group).broken.clone()
    }

    /// Whether commands worked in a private view: nothing of theirs is in the live tree.
    pub fn is_private(&self) -> bool {
        lock(&self.group).tier == Some(CaptureTier::Private)
    }

    fn processes(&self, kernel: &Kernel) -> Result<Processes> {
        let mut owner = lock(&self.owner);
        if owner.closed {
            return Err(Error::new(
                ErrorKind::Cancelled,
                "the cell has ended; no further command is started",
            ));
        }
        if owner.processes.is_none() {
            owner.processes = Some(Processes::new(supervisor(kernel)?));
        }
        owner
            .processes
            .clone()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "a process owner that was just made is gone"))
    }

    /// Joins the group of runs, beginning one if none is under way.
    fn enter(&self, cell: &Cell, epoch: Epoch, token: &CancelToken) -> Result<()> {
        let mut group = lock(&self.group);
        if let Some(why) = &group.broken {
            return Err(why.clone());
        }
        if group.active == 0 {
            let tier = match group.tier {
                Some(CaptureTier::Private) => {
                    group.view = Some(cell.with_transaction(|transaction| transaction.open_view(token))?);
                    CaptureTier::Private
                }
                None if wants_private(&cell.kernel)? => {
                    match cell.with_transaction(|transaction| transaction.open_view(token)) {
                        Err(e) if e.kind == ErrorKind::Unsupported && !must_be_private(&cell.kernel) => {
                            baseline(cell, epoch, token)?
                        }
                        opened => {
                            group.view = Some(opened?);
                            CaptureTier::Private
                        }
                    }
                }
                _ => baseline(cell, epoch, token)?,
            };
            group.tier = Some(tier);
            lock(&cell.record).capture = Some(tier);
        }
        group.active += 1;
        Ok(())
    }

    /// Starts a command of the group in the group's view.
    fn spawn(&self, ready: Ready, mut spec: Spec) -> Result<Running> {
        let mut group = lock(&self.group);
        let Some(view) = &group.view else {
            drop(group);
            return ready.spawn(spec).map_err(|e| error(&e));
        };
        if let Some(mounted) = &group.mounted {
            spec.view = View::Mounted(Arc::clone(mounted));
            drop(group);
            return ready.spawn(spec).map_err(|e| error(&e));
        }
        spec.view = View::Overlay(Overlay {
            root: view.root.clone(),
            upper: view.upper.clone(),
            work: view.work.clone(),
            through: view.through.iter().map(|path| path.as_os_str().into()).collect(),
        });
        // Whoever comes meanwhile waits here for the mount.
        let running = ready.spawn(spec).map_err(|e| error(&e))?;
        group.mounted = running.mounted();
        Ok(running)
    }

    /// Leaves the group; the last one out has the effects captured.
    fn leave(&self, cell: &Cell) -> Result<()> {
        let mut group = lock(&self.group);
        group.active -= 1;
        if group.active > 0 {
            return Ok(());
        }
        // Unmounts it: nobody writes to its upper layer from here on.
        group.mounted = None;
        group.view = None;
        let token = match group.tier {
            Some(CaptureTier::Private) => collecting(cell),
            // Not cut short by a cancellation: what the commands changed in the live tree must be known to be taken back.
            _ => CancelToken::new(),
        };
        match cell.with_transaction(|transaction| transaction.end_capture(&token)) {
            Ok(captured) => {
                let ignored = &mut lock(&cell.record).ignored_paths;
                // What waits in a private view is counted anew each time.
                *ignored = captured.ignored_paths
                    + if group.tier == Some(CaptureTier::Private) {
                        0
                    } else {
                        *ignored
                    };
                Ok(())
            }
            Err(why) => {
                group.broken = Some(why.clone());
                Err(why)
            }
        }
    }
}

/// The time for looking at what commands did in a private view. What cannot be looked at in time is not published, and
/// nothing of it is in the live tree; but what a command that was just ended did shall be told where that is quick.
fn collecting(cell: &Cell) -> CancelToken {
    let now = Instant::now();
    if cell.cancel.is_cancelled() {
        return CancelToken::new().child(Some(now + LAST_LOOK));
    }
    cell.cancel
        .child(cell.deadline.map(|deadline| deadline.max(now + LAST_LOOK)))
}

/// Finds the supervisor's binary.
pub(crate) fn supervisor(kernel: &Kernel) -> Result<PathBuf> {
    supervisor::locate::locate(kernel.config.supervisor.as_deref()).map_err(|e| error(&e))
}

fn must_be_private(kernel: &Kernel) -> bool {
    kernel.config.capture == Capture::RequirePrivate
}

/// Whether the commands of a cell get a private view.
fn wants_private(kernel: &Kernel) -> Result<bool> {
    if kernel.config.capture == Capture::Baseline {
        return Ok(false);
    }
    match kernel.why_no_view()? {
        None => Ok(true),
        Some(why) if must_be_private(kernel) => Err(Error::new(
            ErrorKind::Unsupported,
            format!("the host requires the capture tier `private`, which cannot be had here: {why}"),
        )),
        Some(_) => Ok(false),
    }
}

/// Publishes what is staged and takes the baseline.
fn baseline(cell: &Cell, epoch: Epoch, token: &CancelToken) -> Result<CaptureTier> {
    cell.with_transaction(|transaction| {
        transaction.materialize(epoch, token)?;
        transaction.begin_capture(epoch, token)
    })
}

/// Answers `z.run`.
pub(crate) fn run(cell: &Arc<Cell>, request: RunRequest, token: &CancelToken) -> Result<CallReply> {
    reply(&run_command(cell, request, token)?)
}

/// Runs one command to its end.
pub(crate) fn run_command(cell: &Cell, request: RunRequest, token: &CancelToken) -> Result<RunResult> {
    let kernel = &cell.kernel;
    if kernel.config.commands == Commands::Deny {
        return Err(Error::new(ErrorKind::Denied, "the host allows no commands"));
    }
    let argv = argv(&request.command)?;
    // The supervisor starts while the workspace is leased and the group's tree got ready.
    let ready = cell.runs.processes(kernel)?.ready().map_err(|e| error(&e))?;
    let lease = cell.lease(token)?;
    let epoch = Epoch(lease.epoch());
    cell.runs.enter(cell, epoch, token)?;
    let ran = spec(cell, &request, &argv).and_then(|mut spec| {
        spec.lease = Some(lease);
        let visible = request
            .options
            .visible
            .unwrap_or(cell.budgets.stream_tokens)
            .max(LEAST_SHOWN);
        drive(cell, ready, spec, visible, token)
    });
    let left = cell.runs.leave(cell);
    let (outcome, streams) = ran?;
    left?;
    let result = describe(cell, &outcome, streams);
    let mut record = lock(&cell.record);
    record.confinement.files = Some(word(&outcome.tiers.files));
    record.confinement.tree = Some(word(&outcome.tiers.tree));
    record.processes.push(ProcessVerdict {
        argv,
        termination: result.termination,
        exit_code: result.exit_code,
        signal: result.signal.clone(),
        reason: result.reason,
        cleanup: result.cleanup,
        stdout: result.handles.stdout,
        stderr: result.handles.stderr,
    });
    drop(record);
    Ok(result)
}

fn argv(command: &Command) -> Result<Vec<String>> {
    let argv = command.argv();
    if argv.first().is_none_or(String::is_empty) {
        return Err(Error::invalid("the command is empty").with_path("command"));
    }
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err(Error::invalid("an argument cannot contain a NUL character").with_path("command"));
    }
    Ok(argv)
}

fn spec(cell: &Cell, request: &RunRequest, argv: &[String]) -> Result<Spec> {
    let kernel = &cell.kernel;
    let options = &request.options;
    let mut spec = Spec::new(
        argv,
        working_directory(cell, options.cwd.as_ref().unwrap_or(&cell.cwd))?,
    );
    let pair = |(name, value): (&String, &String)| (OsString::from(name), OsString::from(value));
    if let Some(name) = options
        .env
        .keys()
        .find(|name| name.is_empty() || name.contains(['=', '\0']))
    {
        return Err(Error::invalid(format!("`{name}` is not the name of a variable")).with_path("options.env"));
    }
    if options.env.values().any(|value| value.contains('\0')) {
        return Err(Error::invalid("the value of a variable cannot contain a NUL character").with_path("options.env"));
    }
    spec.env.extend(cell.env.iter().map(pair));
    spec.env.extend(options.env.iter().map(pair));
    spec.stdin = stdin(cell, options.stdin.as_ref().or(cell.stdin.as_ref()))?;
    spec.timeout = options.timeout_ms.map(Duration::from_millis);
    spec.grace = kernel.config.grace;
    spec.cleanup = CLEANUP;
    spec.limits.processes = u32::try_from(cell.budgets.processes).unwrap_or(u32::MAX);
    spec.limits.output = cell.budgets.run_output_bytes;
    spec.files = supervisor::confinement::landlock(
        &kernel.places.root,
        &spec.env,
        &kernel.config.writable_paths,
        std::slice::from_ref(&kernel.places.store),
        false,
    );
    spec.marker_dir = Some(kernel.places.store.clone());
    Ok(spec)
}

fn working_directory(cell: &Cell, path: &WorkspacePath) -> Result<PathBuf> {
    match cell.view().resolve(path)? {
        Some(entry) if entry.kind == EntryKind::Directory => Ok(cell.kernel.places.root.join(entry.path.as_os_str())),
        Some(_) => Err(Error::invalid(format!("`{path}` is not a directory")).with_path("options.cwd")),
        None => {
            Err(Error::new(ErrorKind::NotFound, format!("there is no directory `{path}`")).with_path("options.cwd"))
        }
    }
}

/// Text that is a blob handle as a whole stands for the bytes it names.
fn stdin(cell: &Cell, given: Option<&Content>) -> Result<Stdin> {
    match given {
        None => Ok(Stdin::Null),
        Some(Content::Text(text)) if Handle::is_handle(text) => {
            let handle: Handle = text.parse()?;
            if handle.kind != HandleKind::Blob {
                return Err(Error::invalid(format!("`{text}` does not name bytes"))
                    .with_path("options.stdin")
                    .with_accepted(["text", "bytes", "z://blob/<64 hexadecimal digits>"]));
            }
            Ok(Stdin::Reader(cell.kernel.objects.open(&handle.digest)?))
        }
        Some(content) => Ok(Stdin::Bytes(content.as_bytes().to_vec())),
    }
}

/// Drives the command; both streams are stored whole, and `visible` tokens of each are shown.
fn drive(
    cell: &Cell,
    ready: Ready,
    spec: Spec,
    visible: u64,
    token: &CancelToken,
) -> Result<(supervisor::Outcome, Streams<Shown>)> {
    std::thread::scope(|scope| drive_in(scope, cell, ready, spec, visible, token))
}

fn drive_in<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    cell: &'env Cell,
    ready: Ready,
    spec: Spec,
    visible: u64,
    token: &CancelToken,
) -> Result<(supervisor::Outcome, Streams<Shown>)> {
    let open = || Sink::open(&cell.kernel, scope, visible);
    let (mut stdout, mut stderr) = (open()?, open()?);
    let running = cell.runs.spawn(ready, spec)?;
    let mut poll = || token.check().is_err().then_some(supervisor::EndReason::Cancelled);
    let number = cell.runs.count();
    let mut tell = cell.on_output.clone().map(|on_output| {
        move |stream: supervisor::Stream, bytes: &[u8]| {
            let stream = match stream {
                supervisor::Stream::Stdout => OutputStream::Stdout,
                supervisor::Stream::Stderr => OutputStream::Stderr,
            };
            on_output(Output {
                cell: &cell.id,
                run: number,
                stream,
                bytes,
            });
        }
    });
    let outcome = running.drive(Io {
        stdout: &mut stdout,
        stderr: &mut stderr,
        on_output: tell.as_mut().map(|tell| tell as &mut supervisor::OnOutput<'_>),
        poll: Some(&mut poll),
    });
    if let Some(e) = &outcome.sink_error {
        return Err(output::storing(e));
    }
    // What a cancelled or timed-out command printed is still shown.
    let token = if token.check().is_ok() {
        token.clone()
    } else {
        CancelToken::new()
    };
    let streams = Streams {
        stdout: stdout.finish(&token)?,
        stderr: stderr.finish(&token)?,
    };
    Ok((outcome, streams))
}

fn describe(cell: &Cell, outcome: &supervisor::Outcome, streams: Streams<Shown>) -> RunResult {
    let Streams {
        stdout: Shown {
            handle: stdout,
            projected: out,
        },
        stderr: Shown {
            handle: stderr,
            projected: err,
        },
    } = streams;
    {
        let record = &mut *lock(&cell.record);
        let (raw, shown) = &mut record.tokens;
        *raw += out.raw.tokens + err.raw.tokens;
        *shown += out.shown.tokens + err.shown.tokens;
        for (stream, shown) in [(stdout, &out), (stderr, &err)] {
            if !shown.cuts.is_empty() {
                record.note_cut(stream);
            }
        }
    }
    let (termination, exit_code, signal, detail) = match &outcome.termination {
        supervisor::Termination::Exited { code } => (Termination::Exited, Some(*code), None, None),
        supervisor::Termination::Signalled { signal } => {
            (Termination::Signalled, None, Some(signal_name(*signal)), None)
        }
        supervisor::Termination::SpawnFailed { detail, .. } => {
            (Termination::SpawnFailed, None, None, Some(detail.clone()))
        }
        supervisor::Termination::Unknown => (
            Termination::Signalled,
            None,
            None,
            Some("the supervisor died, and the command's own status with it".to_owned()),
        ),
    };
    let detail = match &outcome.cleanup {
        supervisor::Cleanup::Uncertain { detail, .. } => Some(detail.clone()),
        supervisor::Cleanup::Clean => detail,
    };
    RunResult {
        termination,
        exit_code,
        signal,
        detail,
        reason: match outcome.reason {
            supervisor::EndReason::Natural => EndReason::Natural,
            supervisor::EndReason::Timeout => EndReason::Timeout,
            supervisor::EndReason::Cancelled => EndReason::Cancelled,
            supervisor::EndReason::Limit => EndReason::Limit,
        },
        cleanup: if outcome.cleanup.is_clean() {
            Cleanup::Clean
        } else {
            Cleanup::Uncertain
        },
        complete: outcome.complete && out.cuts.is_empty() && err.cuts.is_empty(),
        stdout: out.text,
        stderr: err.text,
        handles: Streams { stdout, stderr },
        bytes: Streams {
            stdout: outcome.bytes.stdout,
            stderr: outcome.bytes.stderr,
        },
        duration_ms: millis(outcome.duration),
        cpu_ms: millis(outcome.cpu),
        max_rss_bytes: outcome.max_rss_bytes,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn signal_name(signal: i32) -> String {
    signal_hook::low_level::signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

/// The word a tier has in JSON.
fn word<T: serde::Serialize>(tier: &T) -> String {
    serde_json::to_value(tier)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Gives an error of the process owner its kind.
pub(crate) fn error(e: &supervisor::Error) -> Error {
    let kind = match e {
        supervisor::Error::Closed | supervisor::Error::Cancelled => ErrorKind::Cancelled,
        supervisor::Error::Invalid { .. } => ErrorKind::InvalidInput,
        supervisor::Error::NoSupervisor { .. } | supervisor::Error::Unsupported(_) => ErrorKind::Unsupported,
        supervisor::Error::Busy(_) => ErrorKind::Busy,
        _ => ErrorKind::Io,
    };
    let retryable = !matches!(e, supervisor::Error::Busy(busy) if busy.nested) && kind.is_retryable();
    let error = Error::new(kind, e.to_string()).retryable(retryable);
    match e {
        supervisor::Error::Invalid { field, .. } => error.with_path(field),
        _ => error,
    }
}

/// Who asks for the workspace lease, and until when.
pub(crate) fn acquire_lease(
    kernel: &Kernel,
    cell: &CellId,
    token: &CancelToken,
    wait: bool,
) -> Result<supervisor::lease::Lease> {
    // A tenth of the time left stays for the cell to hear that the workspace is busy.
    let left = token.remaining().unwrap_or(Duration::from_secs(30));
    let cancelled = || token.is_cancelled();
    supervisor::lease::acquire(&supervisor::lease::Request {
        dir: &kernel.places.store,
        floor: kernel.files.last_epoch()?.0,
        cell: cell.as_str(),
        deadline: wait.then(|| Instant::now() + left.mul_f64(0.9)),
        cancelled: Some(&cancelled),
    })
    .map_err(|e| error(&e))
}
