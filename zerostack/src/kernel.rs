//! The kernel: opens a workspace, admits cells, and is the only place that composes the engines.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use zero_contracts::files::{Recovered, RecoveredOutcome};
use zero_contracts::response::{Disposition, Outcome, Phase, StateChange};
use zero_contracts::{
    Budgets, CancelToken, CellId, Digest, Epoch, Error, ErrorKind, Event, FileEngine, ObjectStore, Response,
    SessionName, StructureEngine, TokenEngine, WorkspacePath,
};
use zero_supervisor::lease::Lease;

use crate::cell::{Cell, CellCalls, CellStart, lock};
use crate::config::{CellOptions, KernelConfig, Result, StoreLocation};
use crate::engines;
use crate::frame::{self, FrameBudgets, FrameSpec};
use crate::ops::run::acquire_lease;
use crate::record::{canonical_json, now_ms};
use crate::sessions::{EventEntry, Head, Sessions};
use crate::settle::{self, Rejected};
use crate::targets::Places;

/// Frames given up after which the process should be restarted: their memory never comes back.
const FRAMES_GIVEN_UP: usize = 3;

/// An open workspace that runs cells. Cheap to clone; all clones are one kernel. An idle kernel has no thread, child or
/// listener of its own.
#[derive(Clone)]
pub struct ZeroKernel(Arc<Kernel>);

/// The parts of a kernel that its cells share.
pub struct Kernel {
    pub(crate) config: KernelConfig,
    pub(crate) places: Places,
    pub(crate) files: Arc<dyn FileEngine>,
    pub(crate) structure: Arc<dyn StructureEngine>,
    pub(crate) tokens: Arc<dyn TokenEngine>,
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) sessions: Sessions,
    slots: Slots,
    /// Goes with the kernel.
    _transient: Option<tempfile::TempDir>,
}

/// How a kernel is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Cells that run now.
    pub running: usize,
    /// Frames that V8's fatal out-of-memory made the process give up; their memory never comes back.
    pub frames_given_up: usize,
    /// Whether a frame was given up.
    pub tainted: bool,
    /// Who holds the workspace lease, if anybody does.
    pub lease: Option<zero_supervisor::lease::Holder>,
    /// The workspace root, resolved.
    pub root: PathBuf,
    /// The store.
    pub store: PathBuf,
}

impl ZeroKernel {
    /// Opens a workspace. What dead cells left open is ended first, unless somebody works in it now.
    ///
    /// # Errors
    /// `not_found` or `invalid_input` for the root, `invalid_input` for a store inside it, `unsupported` for a store of
    /// another version; `denied`, `corrupt`, `io`.
    pub fn open(config: KernelConfig) -> Result<Self> {
        let root = config
            .root
            .canonicalize()
            .map_err(|e| Error::from_io(&e, "the workspace root").with_path(config.root.display()))?;
        if !root.is_dir() {
            return Err(Error::invalid("the workspace root is not a directory").with_path(root.display()));
        }
        let (store, transient) = store(&config.store, &root)?;
        if store.starts_with(&root) {
            return Err(
                Error::invalid("the store lies inside the workspace, where commands could reach it")
                    .with_path(store.display())
                    .with_accepted(["a directory outside the workspace", "the default", "transient"]),
            );
        }
        let files = engines::files(&config, &root, &store)?;
        let structure = engines::structure(&config);
        let tokens = engines::tokens(&config);
        let places = Places {
            named_root: config.root.clone(),
            root,
            store,
        };
        if zero_supervisor::lease::is_held_by_ancestor(&places.store) {
            return Err(Error::new(
                ErrorKind::Busy,
                "this process was started by a command of a cell that holds this workspace: a cell cannot wait for itself",
            )
            .retryable(false));
        }
        let kernel = Kernel {
            slots: Slots::default(),
            objects: files.objects(),
            sessions: Sessions::open(&places.store)?,
            places,
            files,
            structure,
            tokens,
            config,
            _transient: transient,
        };
        kernel.recover_if_free(&CancelToken::with_timeout(Duration::from_secs(30)))?;
        kernel.sessions.catch_up(&*kernel.files)?;
        Ok(Self(Arc::new(kernel)))
    }

    /// Runs a cell with the kernel's budgets and no input. Blocks until its one response.
    pub fn execute_cell(&self, source: &str) -> Response {
        self.execute_cell_with(source, CellOptions::default())
    }

    /// Runs a cell. Blocks until its one response; every failure is told there.
    pub fn execute_cell_with(&self, source: &str, options: CellOptions) -> Response {
        let started = Instant::now();
        let id = new_cell_id();
        let span = tracing::info_span!("cell", id = id.as_str(), session = self.0.config.session.as_str());
        let _entered = span.enter();
        let host = options.cancel.clone().unwrap_or_default();
        match self.admit(source, &options, &host) {
            Ok((budgets, wall, _slot)) => self.run_admitted(id, source, options, budgets, wall, &host, started),
            Err(error) => settle::reject(
                &self.0,
                Rejected {
                    id,
                    source,
                    error,
                    started,
                },
            ),
        }
    }

    fn admit(&self, source: &str, options: &CellOptions, host: &CancelToken) -> Result<(Budgets, Duration, Slot<'_>)> {
        let kernel = &*self.0;
        let budgets = options.budgets.clone().unwrap_or_else(|| kernel.config.budgets.clone());
        if source.len() as u64 > budgets.source_bytes {
            return Err(Error::invalid(format!(
                "the source has {} bytes; a cell may have {}",
                source.len(),
                budgets.source_bytes
            ))
            .with_path("source"));
        }
        let wall = options.timeout.unwrap_or(Duration::from_millis(budgets.wall_ms));
        if wall.is_zero() {
            return Err(Error::new(
                ErrorKind::Deadline,
                "the cell's time is zero: it was not run",
            ));
        }
        if frame::frames_given_up() >= FRAMES_GIVEN_UP {
            return Err(Error::new(
                ErrorKind::Busy,
                format!("{FRAMES_GIVEN_UP} frames ran out of memory for good in this process: restart it"),
            )
            .retryable(false));
        }
        let slot = kernel.slots.enter(
            kernel.config.concurrent_cells.max(1),
            &host.child(Instant::now().checked_add(wall)),
        )?;
        Ok((budgets, wall, slot))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one admitted cell, used once")]
    fn run_admitted(
        &self,
        id: CellId,
        source: &str,
        options: CellOptions,
        budgets: Budgets,
        wall: Duration,
        host: &CancelToken,
        started: Instant,
    ) -> Response {
        let kernel = Arc::clone(&self.0);
        let head = match kernel.begin(host) {
            Ok(head) => head,
            Err(error) => {
                return settle::reject(
                    &self.0,
                    Rejected {
                        id,
                        source,
                        error,
                        started,
                    },
                );
            }
        };
        let spec = FrameSpec {
            source: source.to_owned(),
            input: options
                .input
                .unwrap_or_default()
                .into_iter()
                .collect::<serde_json::Map<String, Value>>(),
            budgets: frame_budgets(&budgets, wall.saturating_sub(started.elapsed())),
        };
        let start = CellStart {
            id,
            budgets,
            env: options.env,
            cwd: options.cwd.unwrap_or_else(WorkspacePath::root),
            head,
        };
        let cell = Arc::new(Cell::new(kernel, start));
        let ended = frame::run(spec, Arc::new(CellCalls(Arc::clone(&cell))), host);
        cell.close();
        settle::settle(&cell, source, ended, host, started)
    }

    /// Tells which calls of `z` a cell can make, without running it: no call that it makes is missing.
    ///
    /// # Errors
    /// `syntax` with its place; `invalid_input` for a source beyond its budget; `busy` without room to parse it.
    pub fn plan_cell(&self, source: &str) -> Result<Plan> {
        check_size(source, &self.0.config.budgets)?;
        with_fitting_stack(source, || false, plan)?
    }

    /// Returns how the kernel is doing.
    ///
    /// # Errors
    /// `io` if the lease cannot be looked at.
    pub fn status(&self) -> Result<Status> {
        let frames_given_up = frame::frames_given_up();
        Ok(Status {
            running: self.0.slots.running(),
            frames_given_up,
            tainted: frames_given_up > 0,
            lease: zero_supervisor::lease::holder(&self.0.places.store).map_err(|e| crate::ops::run::error(&e))?,
            root: self.0.places.root.clone(),
            store: self.0.places.store.clone(),
        })
    }

    /// Returns the latest events of the kernel's session, newest first.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn events(&self, limit: u32) -> Result<Vec<EventEntry>> {
        self.0.sessions.catch_up(&*self.0.files)?;
        self.0.sessions.events(&self.0.config.session, limit)
    }

    /// Returns an event by its digest.
    ///
    /// # Errors
    /// `not_found`, `corrupt`.
    pub fn event(&self, event: &Digest) -> Result<Event> {
        serde_json::from_slice(&self.0.objects.get(event)?)
            .map_err(|e| Error::new(ErrorKind::Corrupt, format!("{event} is not an event: {e}")))
    }

    /// Checks every stored object and journal frame; the answer lists what is damaged.
    ///
    /// # Errors
    /// `io`; `cancelled` and `deadline` from the token.
    pub fn verify(&self, token: &CancelToken) -> Result<Vec<zero_contracts::files::Damage>> {
        self.0.files.verify(token)
    }

    /// Returns the kernel's object store: reads handles from outside a cell.
    pub fn objects(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.0.objects)
    }
}

impl Kernel {
    /// Makes what is durable current and returns where the session stands.
    fn begin(&self, token: &CancelToken) -> Result<Head> {
        if self.files.has_open_transaction()? {
            self.recover_if_free(token)?;
        }
        self.sessions.catch_up(&*self.files)?;
        self.sessions.head(&self.config.session)
    }

    /// Waits for the workspace lease and ends what dead cells left open.
    pub(crate) fn acquire(&self, cell: &CellId, token: &CancelToken) -> Result<Lease> {
        let lease = acquire_lease(self, cell, token, true)?;
        self.recover(&lease, token)?;
        Ok(lease)
    }

    /// Ends what dead cells left open if nobody holds the lease; otherwise the holder will.
    fn recover_if_free(&self, token: &CancelToken) -> Result<()> {
        if !self.files.has_open_transaction()? {
            return Ok(());
        }
        match acquire_lease(self, &new_cell_id(), token, false).and_then(|lease| self.recover(&lease, token)) {
            Err(e) if e.kind == ErrorKind::Cancelled => Err(e),
            // Reading goes on and says `uncommitted`; whoever writes meets the same error again.
            Err(e) if e.kind != ErrorKind::Busy => {
                tracing::warn!(error = %e, "what a dead cell left open could not be ended");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn recover(&self, lease: &Lease, token: &CancelToken) -> Result<()> {
        for dead in self.files.recover(Epoch(lease.epoch()), token)? {
            self.record_death(dead, token)?;
        }
        self.sessions.catch_up(&*self.files)
    }

    /// Records the terminal event of a cell whose host died before its commit.
    fn record_death(&self, dead: Recovered, token: &CancelToken) -> Result<()> {
        let RecoveredOutcome::Restored(restoration) = dead.outcome else {
            return Ok(());
        };
        let _head = self.sessions.lock(&dead.session, token)?;
        let head = self.sessions.head(&dead.session)?;
        let error = Error::new(
            ErrorKind::Internal,
            "the host died before this cell was committed; everything was taken back",
        );
        let event = Event {
            schema: zero_contracts::event::EVENT_SCHEMA.to_owned(),
            session: dead.session.clone(),
            cell: dead.cell.clone(),
            at_ms: now_ms(),
            source: None,
            outcome: Outcome::Failed,
            error: Some(zero_contracts::response::ResponseError::new(error, Phase::Running)),
            disposition: Disposition::Restored,
            state: StateChange {
                before: head.state,
                after: head.state,
                unchanged: true,
            },
            receipts: Vec::new(),
            processes: Vec::new(),
            external_reads: Vec::new(),
            handles: restoration
                .conflicts
                .iter()
                .flat_map(|conflict| [conflict.ours, conflict.theirs])
                .flatten()
                .collect(),
            ledger: zero_contracts::ResourceLedger::default(),
            value: None,
            console: None,
            previous: head.event,
        };
        let event = self.objects.put(&canonical_json(&event)?)?;
        self.sessions.append(
            &dead.session,
            &dead.cell,
            Head {
                state: head.state,
                event: Some(event),
            },
        )
    }

    pub(crate) fn session(&self) -> &SessionName {
        &self.config.session
    }
}

/// A name from time and randomness: in order of time, and never the same twice.
fn new_cell_id() -> CellId {
    let id = CellId::new(format!("cell-{}", uuid::Uuid::now_v7().simple()));
    id.expect("a prefix and 32 hexadecimal digits are a valid cell id")
}

fn frame_budgets(budgets: &Budgets, wall: Duration) -> FrameBudgets {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    FrameBudgets {
        wall,
        cpu: Duration::from_millis(budgets.cpu_ms),
        heap_bytes: size(budgets.heap_bytes),
        array_buffer_bytes: size(budgets.array_buffer_bytes),
        calls: budgets.calls,
        concurrent_calls: size(budgets.concurrent_calls),
        pending_argument_bytes: size(budgets.pending_argument_bytes),
        timers: size(budgets.timers),
        ..FrameBudgets::default()
    }
}

/// Finds or makes the store's directory, readable by its owner alone.
fn store(location: &StoreLocation, root: &Path) -> Result<(PathBuf, Option<tempfile::TempDir>)> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |e: std::io::Error| Error::from_io(&e, "making the store").with_path(path.display())
    };
    let path = match location {
        StoreLocation::Transient => {
            let directory = tempfile::Builder::new()
                .prefix("zerostack-")
                .tempdir()
                .map_err(failed(&std::env::temp_dir()))?;
            let path = directory.path().canonicalize().map_err(failed(directory.path()))?;
            return Ok((path, Some(directory)));
        }
        StoreLocation::At(path) => std::path::absolute(path).map_err(failed(path))?,
        StoreLocation::UserState => {
            use std::os::unix::ffi::OsStrExt;
            let directories = directories::BaseDirs::new().ok_or_else(|| {
                Error::new(
                    ErrorKind::NotFound,
                    "the user has no home directory: name the store's directory",
                )
            })?;
            // `state_dir` is there on Linux alone; elsewhere the local data directory serves.
            let base = directories.state_dir().unwrap_or_else(|| directories.data_local_dir());
            let key = Digest::of(root.as_os_str().as_bytes()).to_hex();
            base.join("zerostack").join(&key[..16])
        }
    };
    // Before anything is made: a refused store leaves no directory behind.
    if path.starts_with(root) {
        return Ok((path, None));
    }
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&path)
        .map_err(failed(&path))?;
    let path = path.canonicalize().map_err(failed(&path))?;
    Ok((path, None))
}

/// Bounds the cells that run at once; the others wait.
#[derive(Default)]
struct Slots {
    running: Mutex<usize>,
    freed: Condvar,
}

struct Slot<'a>(&'a Slots);

impl Slots {
    fn running(&self) -> usize {
        *lock(&self.running)
    }

    fn enter(&self, most: usize, token: &CancelToken) -> Result<Slot<'_>> {
        let mut running = lock(&self.running);
        while *running >= most {
            token.check().map_err(|e| match e.kind {
                ErrorKind::Deadline => {
                    Error::new(ErrorKind::Busy, format!("{most} cells run already; none ended in time"))
                }
                _ => e,
            })?;
            let nap = Duration::from_millis(20);
            running = self
                .freed
                .wait_timeout(running, nap)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        *running += 1;
        Ok(Slot(self))
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *lock(&self.0.running) -= 1;
        self.0.freed.notify_one();
    }
}
