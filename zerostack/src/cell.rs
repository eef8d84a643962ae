//! One cell while it runs: its transaction, facts, reads and counters, and the road from a call to an operation.
//!
//! Calls run in parallel on threads of the frame's runtime. The view that reads go through is replaced after each staged
//! change, so that reads never wait for a change that is being staged. When the cell closes, no further call is admitted
//! and [`Cell::close`] waits for those inside.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use serde_json::Value;
use zero_contracts::event::ProcessVerdict;
use zero_contracts::files::{BeginTransaction, ReadLog};
use zero_contracts::ledger::ConfinementTier;
use zero_contracts::response::CaptureTier;
use zero_contracts::{
    Budgets, CancelToken, CellId, Content, Digest, Error, ErrorKind, Handle, Result, SessionName, SourceView,
    Transaction, WorkspacePath,
};
use zero_supervisor::lease::Lease;

use crate::admission::Interrupt;
use crate::config::OnOutput;
use crate::facts::Facts;
use crate::frame::{CallHandler, CallReply, CallRequest};
use crate::kernel::Kernel;
use crate::ops;
use crate::ops::read::searched::Held;
use crate::ops::run::Runs;
use crate::outbox::Intents;
use crate::sessions::Head;

/// Locks a mutex whose data stays consistent even if a holder panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One cell while it runs.
pub struct Cell {
    /// The kernel it runs in.
    pub kernel: Arc<Kernel>,
    /// Its name.
    pub id: CellId,
    /// Its session.
    pub session: SessionName,
    /// Its budgets.
    pub budgets: Budgets,
    /// Variables that each of its commands gets.
    pub env: BTreeMap<String, String>,
    /// Where its commands start.
    pub cwd: WorkspacePath,
    /// What its commands read that name no input.
    pub stdin: Option<Content>,
    /// When its time is up, its settling included; none for what the host does by itself.
    pub deadline: Option<Instant>,
    /// The host's cancellation of all of it.
    pub cancel: CancelToken,
    /// Gets the output of its commands while they run.
    pub on_output: Option<OnOutput>,
    /// Ends its calls that are at work.
    pub interrupt: Interrupt,
    /// Where the session stood when the cell began.
    pub head: Head,
    /// The facts of its session, loaded at first use.
    pub facts: Mutex<Option<Facts>>,
    /// Its transaction, made at the first effect.
    pub transaction: Mutex<Option<Box<dyn Transaction>>>,
    /// What it last read of each file.
    pub reads: Mutex<ReadLog>,
    /// Contents that it goes through match by match.
    pub(crate) held: Mutex<Held>,
    /// Its commands.
    pub runs: Runs,
    /// The effects on the outside world that it staged.
    pub(crate) intents: Mutex<Intents>,
    /// What it did, for event and ledger.
    pub record: Mutex<CellRecord>,
    /// Bytes read from the workspace, the store and outside.
    pub bytes_read: AtomicU64,
    lease: Mutex<Option<Arc<Lease>>>,
    view: RwLock<Arc<dyn SourceView>>,
    /// Whether anything was looked at in the tree.
    looked: AtomicBool,
    /// The state root that belongs to what was looked at in the tree.
    root_seen: Mutex<Option<Digest>>,
    gate: Gate,
}

/// What a cell did, for its event and ledger.
#[derive(Default)]
pub struct CellRecord {
    /// Files outside the workspace that were read.
    pub external_reads: Vec<String>,
    /// Commands that ended.
    pub processes: Vec<ProcessVerdict>,
    /// Tokens that run output would have cost whole, and cost as shown.
    pub tokens: (u64, u64),
    /// Changes of ignored paths by commands.
    pub ignored_paths: u64,
    /// How effects of commands are captured.
    pub capture: Option<CaptureTier>,
    /// How commands were confined.
    pub confinement: ConfinementTier,
    /// Output of commands of which a part was not shown; the first ones.
    pub cut: Vec<Handle>,
}

/// So many streams of which a part was not shown are named in the response. The event names those of every command.
const CUT: usize = 32;

impl CellRecord {
    /// Notes a stream of which a part was not shown.
    pub fn note_cut(&mut self, stream: Handle) {
        if self.cut.len() < CUT && !self.cut.contains(&stream) {
            self.cut.push(stream);
        }
    }
}

/// Admission of calls: open until the cell settles.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    empty: Condvar,
}

#[derive(Default)]
struct GateState {
    closed: bool,
    inside: u64,
}

impl Gate {
    fn enter(&self) -> Result<Inside<'_>> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(Error::new(
                ErrorKind::Cancelled,
                "the cell has ended; no further call is admitted",
            ));
        }
        state.inside += 1;
        Ok(Inside(self))
    }

    fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        while state.inside > 0 {
            state = self.empty.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

struct Inside<'a>(&'a Gate);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.inside -= 1;
        if state.inside == 0 {
            self.0.empty.notify_all();
        }
    }
}

/// What a cell is made of, beside the kernel's own parts.
pub struct CellStart {
    /// Its name.
    pub id: CellId,
    /// Its session.
    pub session: SessionName,
    /// Its budgets.
    pub budgets: Budgets,
    /// Variables that each of its commands gets.
    pub env: BTreeMap<String, String>,
    /// Where its commands start.
    pub cwd: WorkspacePath,
    /// What its commands read that name no input.
    pub stdin: Option<Content>,
    /// When its time is up, its settling included; none for what the host does by itself.
    pub deadline: Option<Instant>,
    /// The host's cancellation of all of it.
    pub cancel: CancelToken,
    /// Gets the output of its commands while they run.
    pub on_output: Option<OnOutput>,
    /// Ends its calls that are at work.
    pub interrupt: Interrupt,
    /// Where the session stands.
    pub head: Head,
}

impl Cell {
    /// Makes a cell that has done nothing yet.
    pub fn new(kernel: Arc<Kernel>, start: CellStart) -> Self {
        let view = RwLock::new(kernel.files.live());
        let CellStart {
            id,
            session,
            budgets,
            env,
            cwd,
            stdin,
            deadline,
            cancel,
            on_output,
            interrupt,
            head,
        } = start;
        Self {
            runs: Runs::default(),
            lease: Mutex::default(),
            kernel,
            id,
            session,
            budgets,
            env,
            cwd,
            stdin,
            deadline,
            cancel,
            on_output,
            interrupt,
            head,
            facts: Mutex::default(),
            transaction: Mutex::default(),
            reads: Mutex::default(),
            held: Mutex::default(),
            intents: Mutex::default(),
            record: Mutex::default(),
            bytes_read: AtomicU64::new(0),
            view,
            looked: AtomicBool::new(false),
            root_seen: Mutex::new(head.state),
            gate: Gate::default(),
        }
    }

    /// Returns the tree as the cell sees it now.
    pub fn view(&self) -> Arc<dyn SourceView> {
        self.looked.store(true, Ordering::Relaxed);
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether what the cell saw of the tree and what it saw of the state, if it saw both, belong together as `root` does
    /// now: no commit of the session came between.
    pub fn saw_as_one(&self, facts: &Facts, root: Option<Digest>) -> bool {
        !self.has_looked() || (facts.base() == root && *lock(&self.root_seen) == root)
    }

    /// Whether the cell looked at the tree.
    pub fn has_looked(&self) -> bool {
        self.looked.load(Ordering::Relaxed)
    }

    /// Returns the workspace lease, which the cell holds from its first effect to its end. Whoever gets it first ends what
    /// dead cells left open.
    ///
    /// # Errors
    /// `busy` with the holder's identity when the time is up, at once for a cell started by a command of the holder;
    /// `cancelled`; those of the recovery.
    pub fn lease(&self, token: &CancelToken) -> Result<Arc<Lease>> {
        let mut slot = lock(&self.lease);
        if let Some(lease) = &*slot {
            return Ok(Arc::clone(lease));
        }
        let lease = Arc::new(self.kernel.acquire(&self.id, token)?);
        if !self.has_looked() {
            // What others committed meanwhile is what this cell will see.
            *lock(&self.root_seen) = self.kernel.sessions.head(&self.session)?.state;
        }
        *slot = Some(Arc::clone(&lease));
        Ok(lease)
    }

    /// Takes the lease out of the cell, if it ever got it.
    pub fn take_lease(&self) -> Option<Arc<Lease>> {
        lock(&self.lease).take()
    }

    /// How the cell's transaction begins.
    pub(crate) fn begin_transaction(&self) -> BeginTransaction {
        BeginTransaction {
            cell: self.id.clone(),
            session: self.session.clone(),
            staged_bytes: self.budgets.staged_bytes,
        }
    }

    /// Does something with the cell's transaction, which is begun if there is none, and renews the view.
    ///
    /// # Errors
    /// Those of `work`; `io` if the transaction cannot begin.
    pub fn with_transaction<T>(&self, work: impl FnOnce(&mut dyn Transaction) -> Result<T>) -> Result<T> {
        let mut slot = lock(&self.transaction);
        if slot.is_none() {
            *slot = Some(self.kernel.files.begin(self.begin_transaction())?);
        }
        let Some(transaction) = slot.as_mut() else {
            return Err(Error::new(
                ErrorKind::Internal,
                "a transaction that was just begun is gone",
            ));
        };
        let done = work(transaction.as_mut());
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = transaction.view();
        done
    }

    /// Notes what the cell saw of a file: the guard of a later edit that names none.
    pub fn note_read(&self, path: WorkspacePath, digest: Digest, bytes: u64) {
        lock(&self.reads).note(path, digest);
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Does something with the session's facts, loaded at first use.
    ///
    /// # Errors
    /// Those of `work`; `not_found`, `corrupt` if the state root cannot be loaded.
    pub fn with_facts<T>(&self, work: impl FnOnce(&mut Facts) -> Result<T>) -> Result<T> {
        let mut slot = lock(&self.facts);
        if slot.is_none() {
            // As they stand now: a cell that waited for the workspace goes on from what it waited for.
            self.kernel.sessions.catch_up(&*self.kernel.files)?;
            let head = self.kernel.sessions.head(&self.session)?;
            if !self.has_looked() {
                *lock(&self.root_seen) = head.state;
            }
            *slot = Some(Facts::load(head.state, &*self.kernel.objects)?);
        }
        match slot.as_mut() {
            Some(facts) => work(facts),
            None => Err(Error::new(ErrorKind::Internal, "facts that were just loaded are gone")),
        }
    }

    /// Ends admission, ends every command, and waits until no call is inside. The calls' token is cancelled already.
    pub fn close(&self) {
        self.runs.close();
        self.gate.close();
    }

    fn answer(self: &Arc<Self>, request: CallRequest) -> Result<CallReply> {
        let _inside = self.gate.enter()?;
        let interruptible = self.interrupt.enter(&request.cancel);
        let token: &CancelToken = &interruptible.token;
        token.check()?;
        let _entered = tracing::debug_span!("call", name = request.name).entered();
        let arguments: Vec<Value> = serde_json::from_str(&request.arguments)
            .map_err(|e| Error::new(ErrorKind::Internal, format!("the frame sent malformed arguments: {e}")))?;
        if let Some(policy) = &self.kernel.config.policy {
            policy.check(request.operation, &arguments, token).map_err(|why| {
                // A policy that gives up because the cell is over has denied nothing.
                token.check().err().unwrap_or_else(|| {
                    Error::new(
                        ErrorKind::Denied,
                        format!("the host's policy denies z.{}: {why}", request.name),
                    )
                })
            })?;
        }
        ops::answer(self, request.operation, request.name, arguments, token)
    }
}

/// Carries the calls of a frame to its cell.
pub struct CellCalls(pub Arc<Cell>);

impl CallHandler for CellCalls {
    fn call(&self, request: CallRequest) -> Pin<Box<dyn Future<Output = Result<CallReply>> + Send>> {
        let cell = Arc::clone(&self.0);
        Box::pin(async move {
            let name = request.name;
            tokio::task::spawn_blocking(move || cell.answer(request))
                .await
                .unwrap_or_else(|_| {
                    Err(Error::new(
                        ErrorKind::Internal,
                        format!("z.{name} panicked; nothing of it was kept"),
                    ))
                })
        })
    }
}
