//! The kernel: opens a workspace, and is the only place that composes the engines.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use zero_contracts::{
    CancelToken, CellId, Digest, Error, ErrorKind, FileEngine, ObjectStore, SessionName, SourceView, StructureEngine,
    TokenEngine, ZeroKernelEvent,
};

use crate::admission::{Admission, Scope};
use crate::config::{KernelConfig, Result};
use crate::engines;
use crate::frame;
use crate::location;
use crate::outbox::Outbox;
use crate::sessions::{LogEntry, Sessions};
use crate::subscribe::{EventStream, Subscribers};
use crate::targets::Places;

/// An open workspace that runs cells, on behalf of one session. Cheap to clone; all clones are one kernel. An idle kernel
/// has no thread, child or listener of its own.
#[derive(Clone)]
pub struct ZeroKernel {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) scope: Scope,
}

/// The parts of a kernel that its cells share, whatever their session.
pub struct Kernel {
    pub(crate) config: KernelConfig,
    pub(crate) places: Places,
    pub(crate) files: Arc<dyn FileEngine>,
    pub(crate) structure: Arc<dyn StructureEngine>,
    pub(crate) tokens: Arc<dyn TokenEngine>,
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) sessions: Sessions,
    pub(crate) outbox: Outbox,
    pub(crate) admission: Admission,
    pub(crate) subscribers: Subscribers,
    /// Why commands get no private view here; asked once.
    no_view: OnceLock<Option<String>>,
    /// Goes with the kernel.
    _transient: Option<tempfile::TempDir>,
}

/// How a kernel is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Cells that run now, of every session.
    pub running: Vec<CellId>,
    /// Frames that the process gave up and that have not ended: those that V8's fatal out-of-memory stopped never do, and keep
    /// their memory; those that a long native function made late do when it returns.
    pub frames_given_up: usize,
    /// Whether a frame was given up.
    pub tainted: bool,
    /// Whether the kernel was shut down: it runs no further cell.
    pub closed: bool,
    /// Who holds the workspace lease, if anybody does.
    pub lease: Option<zero_supervisor::lease::Holder>,
    /// The session.
    pub session: SessionName,
    /// The workspace root, resolved.
    pub root: PathBuf,
    /// The store.
    pub store: PathBuf,
}

/// What a shutdown could not prove gone; empty if everything is.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Leftovers {
    /// Cells that had not ended at the deadline. They end by themselves; nothing of theirs is committed any more.
    pub cells: Vec<CellId>,
    /// Frames of this process that were given up and have not ended: out of memory for good, or late.
    pub frames_given_up: usize,
    /// Threads of this process that still parse the source of a cell that has ended.
    pub parsers: usize,
    /// Who still holds the workspace lease in this process's name: a command tree that is not proven empty.
    pub lease: Option<zero_supervisor::lease::Holder>,
}

impl Leftovers {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.frames_given_up == 0 && self.parsers == 0 && self.lease.is_none()
    }
}

impl ZeroKernel {
    /// Opens a workspace. What dead cells left open is ended first, unless somebody works in it now.
    ///
    /// # Errors
    /// `not_found` or `invalid_input` for the root, `invalid_input` for a store inside it, `unsupported` for a store of
    /// another version; `denied`, `corrupt`, `io`.
    #[tracing::instrument(level = "debug", skip_all, fields(root = %config.root.display()))]
    pub fn open(config: KernelConfig) -> Result<Self> {
        if let Some(name) = config.mounts.keys().find(|name| name.is_empty() || name.contains('/')) {
            return Err(Error::invalid(format!(
                "`{name}` cannot name a mount: a name is not empty and has no `/`"
            ))
            .with_path("mounts"));
        }
        let root = resolve_root(&config)?;
        let (store, transient) = location::make(&config.store, &root)?;
        // Asked before anything is opened: through a private view the root looks like another one.
        if zero_supervisor::lease::is_held_by_ancestor(&store) {
            return Err(Error::new(
                ErrorKind::Busy,
                "this process was started by a command of a cell that holds this workspace: a cell cannot wait for itself",
            )
            .retryable(false));
        }
        let files = engines::files(&config, &root, &store)?;
        let structure = engines::structure(&config, transient.is_none().then_some(&*store))?;
        let tokens = engines::tokens(&config);
        // What a transient store holds goes with the kernel: there is nothing to make durable.
        let lasts = transient.is_none().then_some(config.durability);
        let places = Places { root, store };
        let kernel = Kernel {
            admission: Admission::default(),
            subscribers: Subscribers::default(),
            no_view: OnceLock::new(),
            objects: files.objects(),
            sessions: match &transient {
                Some(_) => Sessions::transient(&places.store)?,
                None => Sessions::open(&places.store)?,
            },
            outbox: Outbox::new(config.effects.clone(), &places.store, lasts)?,
            places,
            files,
            structure,
            tokens,
            config,
            _transient: transient,
        };
        kernel.recover_if_free(&CancelToken::with_timeout(Duration::from_secs(30)))?;
        kernel.sessions.catch_up(&*kernel.files)?;
        kernel.reconcile_at_opening();
        Ok(Self {
            scope: Scope {
                session: kernel.config.session.clone(),
                token: CancelToken::new(),
            },
            kernel: Arc::new(kernel),
        })
    }

    /// Cancels one cell of this kernel, of whatever session, by its name. Tells whether the kernel knew it; that it ended is
    /// told by its response.
    pub fn cancel(&self, cell: &CellId) -> bool {
        self.kernel.admission.cancel(cell)
    }

    /// Shuts the kernel down, with the forks attached to it: their cells are cancelled, all at once, and no further one is admitted.
    /// Blocks until all have ended, at most until `deadline` from now, and returns what could not be proven gone.
    ///
    /// # Errors
    /// `io` if the lease cannot be looked at.
    #[tracing::instrument(level = "debug", skip_all, fields(session = self.scope.session.as_str()))]
    pub fn shutdown(&self, deadline: Duration) -> Result<Leftovers> {
        let until = Instant::now().checked_add(deadline).unwrap_or_else(Instant::now);
        self.scope.token.cancel();
        let cells = self.kernel.admission.wait_ended(until);
        let own = |holder: &zero_supervisor::lease::Holder| {
            self.kernel.admission.running().is_empty() && u32::try_from(holder.process.pid) == Ok(std::process::id())
        };
        Ok(Leftovers {
            cells,
            frames_given_up: frame::frames_given_up(),
            parsers: crate::syntax::join_late(until),
            lease: self.lease_holder()?.filter(own),
        })
    }

    /// Returns how the kernel is doing.
    ///
    /// # Errors
    /// `io` if the lease cannot be looked at.
    pub fn status(&self) -> Result<Status> {
        let frames_given_up = frame::frames_given_up();
        Ok(Status {
            running: self.kernel.admission.running(),
            frames_given_up,
            tainted: frames_given_up > 0,
            closed: self.scope.token.is_cancelled(),
            lease: self.lease_holder()?,
            session: self.scope.session.clone(),
            root: self.kernel.places.root.clone(),
            store: self.kernel.places.store.clone(),
        })
    }

    fn lease_holder(&self) -> Result<Option<zero_supervisor::lease::Holder>> {
        zero_supervisor::lease::holder(&self.kernel.places.store).map_err(|e| crate::ops::run::error(&e))
    }

    /// Returns why commands get no private view of this workspace (tier `private`); `None` if they get one. Tried once.
    ///
    /// # Errors
    /// `unsupported` without a supervisor; `io` if it cannot be tried.
    pub fn why_no_private_view(&self) -> Result<Option<String>> {
        self.kernel.why_no_view()
    }

    /// Subscribes to the events that this kernel records from now on, of every session. A subscriber that is slow, or
    /// gone, changes nothing: see [`EventStream`].
    pub fn events(&self) -> EventStream {
        self.kernel.subscribers.subscribe()
    }

    /// Returns the latest events of the session, newest first.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn log(&self, limit: u32) -> Result<Vec<LogEntry>> {
        self.kernel.sessions.catch_up(&*self.kernel.files)?;
        self.kernel.sessions.events(&self.scope.session, limit)
    }

    /// Returns the kernel's object store: reads handles from outside a cell.
    pub fn objects(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.kernel.objects)
    }
}

impl Kernel {
    /// Finds a read-only mount by its name.
    pub(crate) fn mount(&self, name: &str) -> Result<&Arc<dyn SourceView>> {
        self.config.mounts.get(name).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("the host mounted nothing as `{name}`"))
                .with_accepted(self.config.mounts.keys().map(|name| format!("mount:{name}/")))
        })
    }

    /// Why commands get no private view here.
    pub(crate) fn why_no_view(&self) -> Result<Option<String>> {
        if let Some(known) = self.no_view.get() {
            return Ok(known.clone());
        }
        let place = match self.files.private_place() {
            Err(e) if e.kind == ErrorKind::Unsupported => {
                return Ok(self.no_view.get_or_init(|| Some(e.detail)).clone());
            }
            place => place?,
        };
        let why = match place {
            None => Some("the engine of this kernel has no private views".to_owned()),
            Some(place) => {
                let processes = zero_supervisor::Processes::new(crate::ops::run::supervisor(self)?);
                processes
                    .why_no_overlay(&self.places.root, &place)
                    .map_err(|e| crate::ops::run::error(&e))?
            }
        };
        Ok(self.no_view.get_or_init(|| why).clone())
    }

    pub(crate) fn event(&self, event: &Digest) -> Result<ZeroKernelEvent> {
        serde_json::from_slice(&self.objects.get(event)?)
            .map_err(|e| Error::new(ErrorKind::Corrupt, format!("{event} is not an event: {e}")))
    }
}

/// The workspace root without symlinks.
pub(crate) fn resolve_root(config: &KernelConfig) -> Result<PathBuf> {
    let root = config
        .root
        .canonicalize()
        .map_err(|e| Error::from_io(&e, "the workspace root").with_path(config.root.display()))?;
    if !root.is_dir() {
        return Err(Error::invalid("the workspace root is not a directory").with_path(root.display()));
    }
    Ok(root)
}

/// A name from time and randomness: in order of time, and never the same twice.
pub(crate) fn new_cell_id() -> CellId {
    let id = CellId::new(format!("cell-{}", uuid::Uuid::now_v7().simple()));
    id.expect("a prefix and 32 hexadecimal digits are a valid cell id")
}
