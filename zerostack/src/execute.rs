//! From a cell's source to its one response: admission, the frame, settling.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use zero_contracts::{Budgets, CancelToken, CellId, Error, ErrorKind, Plan, WorkspacePath, ZeroKernelResponse};

use crate::admission::Admitted;
use crate::cell::{Cell, CellCalls, CellStart};
use crate::config::{CellOptions, Result};
use crate::frame::{self, FrameBudgets, FrameSpec};
use crate::kernel::{Kernel, ZeroKernel, new_cell_id};
use crate::plan;
use crate::sessions::Head;
use crate::settle::{self, Rejected};
use crate::syntax::with_fitting_stack;

/// Frames given up, and not ended, at which no further cell is run: most never give their memory back.
const FRAMES_GIVEN_UP: usize = 3;

/// A cell that may run.
struct Ready<'a> {
    budgets: Budgets,
    wall: Duration,
    _place: Admitted<'a>,
}

/// Tells which calls of `z` a cell can make, as [`ZeroKernel::plan_cell`] does: no workspace is needed for it.
///
/// # Errors
/// As there, with the default budget.
pub fn plan_cell(source: &str) -> Result<Plan> {
    plan_within(source, &Budgets::default())
}

fn plan_within(source: &str, budgets: &Budgets) -> Result<Plan> {
    check_size(source, budgets)?;
    with_fitting_stack(source, || false, plan::plan)?
}

fn check_size(source: &str, budgets: &Budgets) -> Result<()> {
    if source.len() as u64 <= budgets.source_bytes {
        return Ok(());
    }
    let why = format!(
        "the source has {} bytes; a cell may have {}",
        source.len(),
        budgets.source_bytes
    );
    Err(Error::invalid(why).with_path("source"))
}

impl ZeroKernel {
    /// Runs a cell with the kernel's budgets and no input. Blocks until its one response.
    pub fn execute_cell(&self, source: &str) -> ZeroKernelResponse {
        self.execute_cell_with(source, CellOptions::default())
    }

    /// Runs a cell. Blocks until its one response; every failure is told there.
    pub fn execute_cell_with(&self, source: &str, options: CellOptions) -> ZeroKernelResponse {
        let started = Instant::now();
        let id = options.id.clone().unwrap_or_else(new_cell_id);
        let session = &self.scope.session;
        let span = tracing::info_span!("cell", id = id.as_str(), session = session.as_str());
        let _entered = span.enter();
        let host = options.cancel.clone().unwrap_or_default();
        // The host's token is heard, never cancelled.
        let token = host.either(&self.scope.token);
        let response = match self.admit(&id, source, &options, &token) {
            Ok(ready) => match self.kernel.begin(&self.scope.session, &token) {
                Ok(head) => self.run_admitted(id, source, options, &ready, head, &token, started),
                Err(error) => self.reject(id, source, error, started),
            },
            Err(error) => self.reject(id, source, error, started),
        };
        tracing::info!(outcome = ?response.outcome, wall_ms = response.ledger.wall_ms, "ended");
        response
    }

    /// Tells which calls of `z` a cell can make, without running it: no call that it makes is missing.
    ///
    /// # Errors
    /// `syntax` with its place; `invalid_input` for a source beyond its budget; `busy` without room to parse it.
    pub fn plan_cell(&self, source: &str) -> Result<Plan> {
        plan_within(source, &self.kernel.config.budgets)
    }

    fn reject(&self, id: CellId, source: &str, error: Error, started: Instant) -> ZeroKernelResponse {
        let rejected = Rejected {
            session: &self.scope.session,
            id,
            source,
            error,
            started,
        };
        settle::reject(&self.kernel, rejected)
    }

    fn admit(&self, id: &CellId, source: &str, options: &CellOptions, token: &CancelToken) -> Result<Ready<'_>> {
        let kernel = &*self.kernel;
        let budgets = options.budgets.clone().unwrap_or_else(|| kernel.config.budgets.clone());
        check_size(source, &budgets)?;
        if options.id.is_some() && kernel.sessions.knows(id)? {
            return Err(Error::invalid(format!("there was a cell named {id} already")).with_path("id"));
        }
        token.check()?;
        let wall = options.timeout.unwrap_or(Duration::from_millis(budgets.wall_ms));
        if wall.is_zero() {
            // A cell that does not parse is told so all the same.
            plan_within(source, &budgets)?;
            return Err(Error::new(
                ErrorKind::Deadline,
                "the cell's time is zero: it was not run",
            ));
        }
        if frame::frames_given_up() >= FRAMES_GIVEN_UP {
            return Err(Error::new(
                ErrorKind::Busy,
                format!(
                    "{FRAMES_GIVEN_UP} frames of this process could not be ended, most likely because they ran out of memory for \
                     good: restart it if this stays so"
                ),
            )
            .retryable(false));
        }
        let place = kernel.admission.announce(id, token, &self.scope)?;
        let waiting = token.child(Instant::now().checked_add(wall));
        place.enter(kernel.config.concurrent_cells.max(1), &waiting)?;
        Ok(Ready {
            budgets,
            wall,
            _place: place,
        })
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one admitted cell, used once")]
    fn run_admitted(
        &self,
        id: CellId,
        source: &str,
        options: CellOptions,
        ready: &Ready<'_>,
        head: Head,
        token: &CancelToken,
        started: Instant,
    ) -> ZeroKernelResponse {
        let spec = FrameSpec {
            source: source.to_owned(),
            input: options
                .input
                .unwrap_or_default()
                .into_iter()
                .collect::<serde_json::Map<String, Value>>(),
            budgets: frame_budgets(&ready.budgets, ready.wall.saturating_sub(started.elapsed())),
        };
        let start = CellStart {
            id,
            session: self.scope.session.clone(),
            budgets: ready.budgets.clone(),
            env: options.env,
            cwd: options.cwd.unwrap_or_else(WorkspacePath::root),
            stdin: options.stdin,
            deadline: started.checked_add(ready.wall),
            cancel: token.clone(),
            on_output: options.on_output,
            interrupt: options.interrupt.unwrap_or_default(),
            head,
        };
        let cell = Arc::new(Cell::new(Arc::clone(&self.kernel), start));
        let ended = frame::run(spec, Arc::new(CellCalls(Arc::clone(&cell))), token);
        cell.close();
        settle::settle(&cell, source, ended, token, started)
    }
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

impl Kernel {
    /// Makes what is durable current and returns where a session stands.
    pub(crate) fn begin(&self, session: &zero_contracts::SessionName, token: &CancelToken) -> Result<Head> {
        if self.files.has_open_transaction()? {
            self.recover_if_free(token)?;
        }
        self.sessions.catch_up(&*self.files)?;
        self.sessions.head(session)
    }
}
