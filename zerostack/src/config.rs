//! How a kernel is opened and how a cell is run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use zero_contracts::files::Durability;
use zero_contracts::{
    Budgets, CancelToken, CellId, Content, Error, FileEngine, Operation, SessionName, SourceView, StructureEngine,
    TokenEngine, WorkspacePath,
};

use crate::admission::Interrupt;
use crate::evidence::SigningKey;
use crate::outbox::Effects;

/// How a kernel is opened. `KernelConfig::new(root)` gives the documented defaults.
#[derive(Clone)]
pub struct KernelConfig {
    /// The workspace: a directory that exists.
    pub root: PathBuf,
    /// Where objects, journal and sessions live.
    pub store: StoreLocation,
    /// The session whose state cells see and whose chain their events join.
    pub session: SessionName,
    /// Budgets of a cell that names none.
    pub budgets: Budgets,
    /// How long a command may take to obey a request to end before it is killed.
    pub grace: Duration,
    /// What `z.read` may read outside the workspace.
    pub external_reads: ExternalReads,
    /// Whether `z.run` may run commands.
    pub commands: Commands,
    /// How effects of commands are captured.
    pub capture: Capture,
    /// Directories outside the workspace that commands may write to, beside the documented tool-chain caches.
    pub writable_paths: Vec<PathBuf>,
    /// The supervisor's binary; without it, it is looked for beside the current executable.
    pub supervisor: Option<PathBuf>,
    /// What a commit survives.
    pub durability: Durability,
    /// May deny any call before it happens.
    pub policy: Option<Arc<dyn Policy>>,
    /// Engines to use in place of the shipped ones.
    pub engines: Engines,
    /// Effects on the outside world that cells may ask for.
    pub effects: Effects,
    /// Cells that run at once; more wait.
    pub concurrent_cells: usize,
    /// Further trees that `z.read` and `z.find` see as `mount:NAME/path`, and nothing can change. A name has no `/`.
    pub mounts: BTreeMap<String, Arc<dyn SourceView>>,
    /// Signs every event.
    pub signing_key: Option<SigningKey>,
}

impl KernelConfig {
    /// Gives the defaults for a workspace.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            store: StoreLocation::UserState,
            session: SessionName::default(),
            budgets: Budgets::default(),
            grace: Duration::from_millis(500),
            external_reads: ExternalReads::Allow,
            commands: Commands::Allow,
            capture: Capture::default(),
            writable_paths: Vec::new(),
            supervisor: None,
            durability: Durability::default(),
            policy: None,
            engines: Engines::default(),
            effects: Effects::default(),
            concurrent_cells: 16,
            mounts: BTreeMap::new(),
            signing_key: None,
        }
    }
}

/// Where objects, journal and sessions live; never inside the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    /// Under the user's state directory, keyed by the workspace's path.
    UserState,
    /// In this directory, made if absent.
    At(PathBuf),
    /// In a temporary directory that goes when the kernel closes. Nothing of it is flushed, whatever the durability: after a
    /// loss of power nobody would look for it. Files of the workspace are made durable all the same.
    Transient,
}

/// What `z.read` may read outside the workspace; never anything under `/proc`, `/sys` or `/dev`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExternalReads {
    /// Any file.
    Allow,
    /// Files below these directories.
    Roots(Vec<PathBuf>),
    /// None.
    Deny,
}

/// Whether `z.run` may run commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commands {
    /// Any.
    Allow,
    /// None.
    Deny,
}

/// How effects of commands are captured. What was done is named in every response (`effects.capture`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Capture {
    /// In a private view of the workspace where this machine allows one, else by comparing the tree before and after.
    #[default]
    PreferPrivate,
    /// In a private view; where none can be had, `z.run` fails with `unsupported` and says why.
    RequirePrivate,
    /// By comparing the tree before and after: while a command runs, the live tree shows what it does.
    Baseline,
}

/// Engines to use in place of the shipped ones.
#[derive(Clone, Default)]
pub struct Engines {
    /// Bytes.
    pub files: Option<Arc<dyn FileEngine>>,
    /// Structure and search.
    pub structure: Option<Arc<dyn StructureEngine>>,
    /// Output.
    pub tokens: Option<Arc<dyn TokenEngine>>,
}

/// May deny any call before it happens.
pub trait Policy: Send + Sync {
    /// Decides about one call; `arguments` are the JSON values the cell gave. Whoever takes long here stops when the token
    /// ends.
    ///
    /// # Errors
    /// The reason for a denial; the cell gets it as `denied`.
    fn check(&self, operation: Operation, arguments: &[Value], token: &CancelToken) -> Result<(), String>;
}

/// How one cell is run.
#[derive(Clone, Default)]
pub struct CellOptions {
    /// The cell's name, for [`ZeroKernel::cancel`](crate::ZeroKernel::cancel); never one that was used before. Without it
    /// the kernel makes one.
    pub id: Option<CellId>,
    /// Wall-clock time; without it the budget's. Zero: the cell is parsed, and nothing runs.
    pub timeout: Option<Duration>,
    /// Budgets; without them the kernel's.
    pub budgets: Option<Budgets>,
    /// Cancels the cell. The kernel never cancels it itself.
    pub cancel: Option<CancelToken>,
    /// Ends the calls that are at work, and lets the cell go on.
    pub interrupt: Option<Interrupt>,
    /// Values that the cell sees as `input`.
    pub input: Option<BTreeMap<String, Value>>,
    /// Environment variables that every command of the cell gets.
    pub env: BTreeMap<String, String>,
    /// What a command reads whose call names no `stdin`.
    pub stdin: Option<Content>,
    /// Directory that commands start in; without it the root.
    pub cwd: Option<WorkspacePath>,
    /// Gets the output of commands while they run.
    pub on_output: Option<OnOutput>,
}

/// Gets the output of a cell's commands while they run, on the thread that drives the command: what takes long here holds
/// the command up.
pub type OnOutput = Arc<dyn Fn(Output<'_>) + Send + Sync>;

/// A piece of output of a command that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output<'a> {
    /// The cell.
    pub cell: &'a CellId,
    /// Which command of the cell: 0 for the first one started.
    pub run: u64,
    /// Which stream.
    pub stream: OutputStream,
    /// The bytes, as the command wrote them; a character may be cut in two.
    pub bytes: &'a [u8],
}

/// A stream of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Result with the error of the contracts.
pub type Result<T, E = Error> = std::result::Result<T, E>;
