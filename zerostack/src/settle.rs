//! How a cell ends: one judgement, then either everything is published or everything is taken back, then one response.
//!
//! Nothing here runs while a call is inside the cell or a frame is alive.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::Value;
use zero_contracts::edit::{EditReceipt, ReceiptStatus};
use zero_contracts::event::HostAct;
use zero_contracts::files::{CommitSeal, Restoration};
use zero_contracts::ledger::ProcessCounts;
use zero_contracts::response::{
    CaptureTier, Disposition, EffectsReport, Outcome, PathConflict, Phase, Protocol, ResponseError, StateChange,
};
use zero_contracts::tokens::{ProjectText, TextKind};
use zero_contracts::{
    CancelToken, CellId, Digest, Epoch, Error, ErrorKind, Handle, JsonValue, SessionName, ZeroKernelEvent,
    ZeroKernelResponse,
};

use crate::cell::{Cell, lock};
use crate::config::Result;
use crate::frame::{ConsoleLevel, FrameOutcome};
use crate::kernel::Kernel;
use crate::record::{canonical_json, handles_in, now_ms, store_event};
use crate::sessions::Head;

/// What projecting a value may take in any case: a cell that returned in time is not lost by a hair.
const VALUE_TIME: Duration = Duration::from_secs(1);

/// A cell that never ran.
pub(crate) struct Rejected<'a> {
    pub(crate) session: &'a SessionName,
    pub(crate) id: CellId,
    pub(crate) source: &'a str,
    pub(crate) error: Error,
    pub(crate) started: Instant,
}

/// Why a cell does not complete.
struct Failure {
    outcome: Outcome,
    phase: Phase,
    error: Error,
}

impl Failure {
    fn failed(phase: Phase, error: Error) -> Self {
        Self {
            outcome: Outcome::Failed,
            phase,
            error,
        }
    }

    /// Only the host's cancellation makes a cell `Cancelled`.
    fn of(error: Error, phase: Phase, host: &CancelToken) -> Self {
        let cancelled = error.kind == ErrorKind::Cancelled && host.is_cancelled();
        Self {
            outcome: if cancelled { Outcome::Cancelled } else { Outcome::Failed },
            phase,
            error,
        }
    }
}

/// What a response and its event share while they are put together.
struct Report {
    event: ZeroKernelEvent,
    value: Option<JsonValue>,
    console: String,
    effects: EffectsReport,
    /// Output of which a part is not shown.
    cut: Vec<Handle>,
}

/// Answers for a cell that never ran.
pub(crate) fn reject(kernel: &Kernel, rejected: Rejected<'_>) -> ZeroKernelResponse {
    let Rejected {
        session,
        id,
        source,
        error,
        started,
    } = rejected;
    let cancelled = error.kind == ErrorKind::Cancelled;
    let outcome = if cancelled { Outcome::Cancelled } else { Outcome::Failed };
    let mut report = Report {
        event: blank_event(session, &id, Some(source)),
        value: None,
        console: String::new(),
        effects: EffectsReport {
            disposition: Disposition::NeverAdmitted,
            ..EffectsReport::default()
        },
        cut: Vec::new(),
    };
    report.event.outcome = outcome;
    report.event.error = Some(ResponseError::new(error, Phase::Rejected));
    report.event.disposition = Disposition::NeverAdmitted;
    report.event.ledger.wall_ms = milliseconds(started.elapsed());
    let event = record(kernel, &mut report);
    report.into_response(kernel, event)
}

/// Ends what the host did by itself: the changes that the cell holds are published, or taken back. `conflicts` are told
/// whatever becomes of it.
pub(crate) fn settle_act(
    cell: &Cell,
    act: HostAct,
    conflicts: Vec<PathConflict>,
    token: &CancelToken,
) -> ZeroKernelResponse {
    let started = Instant::now();
    let mut report = Report {
        event: blank_event(&cell.session, &cell.id, None),
        value: None,
        console: String::new(),
        effects: EffectsReport {
            conflicts,
            ..EffectsReport::default()
        },
        cut: Vec::new(),
    };
    report.event.act = Some(act);
    let event = match publish(cell, &mut report, None, token, started) {
        Ok(event) => Some(event),
        Err(failure) => take_back(cell, &mut report, failure, started),
    };
    drop(cell.take_lease());
    report.into_response(&cell.kernel, event)
}

/// Ends a cell whose frame is gone and whose calls have all returned.
pub(crate) fn settle(
    cell: &Cell,
    source: &str,
    ended: FrameOutcome,
    host: &CancelToken,
    started: Instant,
) -> ZeroKernelResponse {
    let kernel = &*cell.kernel;
    let counts = cell.runs.wait_empty(kernel.config.grace);
    let mut report = Report {
        event: blank_event(&cell.session, &cell.id, Some(source)),
        value: None,
        console: String::new(),
        effects: EffectsReport::default(),
        cut: Vec::new(),
    };
    report.event.state = StateChange {
        before: cell.head.state,
        after: cell.head.state,
        unchanged: true,
    };
    report.take_record(cell);
    report.event.ledger.cpu_ms = milliseconds(ended.usage.cpu);
    report.event.ledger.heap_peak_bytes = ended.usage.heap_peak as u64;
    report.event.ledger.calls = ended.usage.calls.clone();
    report.event.ledger.processes = ProcessCounts {
        started: counts.started,
        reaped: counts.reaped,
        unproven: counts.unproven + counts.live,
    };
    report.event.ledger.live_children = counts.unproven + counts.live;

    let console = console_text(&ended);
    let completed = report
        .show_console(cell, &console)
        .map_err(|error| Failure::failed(Phase::Settling, error))
        .and_then(|()| judge(cell, &report.event, ended, counts, host))
        .and_then(|value| publish(cell, &mut report, value, host, started));
    let committed = completed.is_ok();
    let event = match completed {
        Ok(event) => Some(event),
        Err(failure) => take_back(cell, &mut report, failure, started),
    };
    // The trees are empty (or their supervisors hold the lease themselves): let the next cell in.
    drop(cell.take_lease());
    let response = report.into_response(kernel, event);
    if committed {
        kernel.after_commit(cell, host);
    }
    response
}

/// Decides whether the cell completes, and with which value.
fn judge(
    cell: &Cell,
    event: &ZeroKernelEvent,
    ended: FrameOutcome,
    counts: zero_supervisor::Counts,
    host: &CancelToken,
) -> std::result::Result<Option<Value>, Failure> {
    let unproven = counts.unproven + counts.live;
    if unproven > 0 {
        return Err(Failure::failed(
            Phase::Settling,
            Error::new(
                ErrorKind::CleanupUncertain,
                format!(
                    "{unproven} command tree(s) could not be proven gone; the workspace stays locked until they are"
                ),
            ),
        ));
    }
    let uncertain = event
        .processes
        .iter()
        .any(|p| p.cleanup == zero_contracts::run::Cleanup::Uncertain);
    if uncertain {
        return Err(Failure::failed(
            Phase::Settling,
            Error::new(
                ErrorKind::CleanupUncertain,
                "the supervisor of a command died; what the command left behind could not be seen in the regular way",
            ),
        ));
    }
    if let Some(why) = cell.runs.broken().filter(|_| !cell.runs.is_private()) {
        return Err(Failure::failed(
            Phase::Settling,
            Error::new(
                ErrorKind::CleanupUncertain,
                format!(
                    "what a command changed could not be captured, and may be left in the tree: {}",
                    why.detail
                ),
            )
            .with_path(why.path.as_deref().unwrap_or(".")),
        ));
    }
    let json = match ended.settled {
        Ok(json) => json,
        Err(error) if error.kind == ErrorKind::Syntax => return Err(Failure::failed(Phase::Rejected, error)),
        // An interrupt is the host's doing, too.
        Err(error) if error.kind == ErrorKind::Cancelled && cell.interrupt.has_fired() => {
            return Err(Failure {
                outcome: Outcome::Cancelled,
                phase: Phase::Running,
                error,
            });
        }
        Err(error) => return Err(Failure::of(error, Phase::Running, host)),
    };
    // Nothing of it is in the live tree: that it cannot be published matters to a cell that would complete.
    if let Some(why) = cell.runs.broken() {
        return Err(Failure::of(why, Phase::Settling, host));
    }
    let cut_short: Vec<_> = ended
        .pending
        .iter()
        .filter(|operation| operation.may_have_effects())
        .collect();
    if let Some(first) = cut_short.first() {
        return Err(Failure::failed(
            Phase::Running,
            Error::new(
                ErrorKind::Exception,
                format!(
                    "z.{first} was still at work when the cell returned ({} call(s) with effects): await every call",
                    cut_short.len()
                ),
            ),
        ));
    }
    host.check()
        .map_err(|error| Failure::of(error, Phase::Settling, host))?;
    json.map(|json| serde_json::from_str(&json)).transpose().map_err(|e| {
        Failure::failed(
            Phase::Settling,
            Error::new(ErrorKind::Internal, format!("the frame's value is not JSON: {e}")),
        )
    })
}

/// Projects the value, makes everything durable and publishes. Nothing is committed if it fails.
fn publish(
    cell: &Cell,
    report: &mut Report,
    value: Option<Value>,
    host: &CancelToken,
    started: Instant,
) -> std::result::Result<Handle, Failure> {
    let kernel = &*cell.kernel;
    let settling = |error: Error| Failure::of(error, Phase::Settling, host);
    if let Some(value) = value {
        report.show_value(cell, &value, host).map_err(settling)?;
    }
    let intents = lock(&cell.intents).store(&*kernel.objects).map_err(settling)?;
    let _head = kernel.lock_head(cell, host).map_err(settling)?;
    kernel.sessions.catch_up(&*kernel.files).map_err(settling)?;
    let head = kernel.sessions.head(&cell.session).map_err(settling)?;
    let state = new_state(cell, head).map_err(settling)?;
    report.event.state = StateChange {
        before: head.state,
        after: state,
        unchanged: head.state == state,
    };
    report.event.previous = head.event;

    let mut transaction = lock(&cell.transaction)
        .take()
        .filter(|transaction| !transaction.is_empty());
    if transaction.is_none() && !intents.is_empty() {
        // Intents are made durable by a commit record, too.
        transaction = Some(kernel.files.begin(cell.begin_transaction()).map_err(settling)?);
    }
    if let Some(transaction) = &transaction {
        report.note_effects(transaction.receipts(), transaction.staged_bytes());
    }
    let intent_digests = intents.iter().map(|record| record.intent).collect();
    report.event.effects = intents;
    report.event.outcome = Outcome::Completed;
    report.event.ledger.wall_ms = milliseconds(started.elapsed());
    let stored = report.store_event(kernel);
    let committed = stored.map_err(settling).and_then(|event| {
        let Some(transaction) = &mut transaction else {
            let next = Head {
                state,
                event: Some(event),
            };
            kernel
                .append(&cell.session, &cell.id, next, state != head.state)
                .map_err(settling)?;
            return Ok(event);
        };
        let lease = cell.lease(host).map_err(settling)?;
        if !lease.is_intact() {
            return Err(Failure::failed(
                Phase::Settling,
                Error::new(
                    ErrorKind::Conflict,
                    "the workspace lease was removed or replaced: nothing may be published",
                ),
            ));
        }
        let seal = CommitSeal {
            session: cell.session.clone(),
            state,
            event,
            intents: intent_digests,
        };
        match transaction.commit(Epoch(lease.epoch()), seal, host) {
            Ok(_) => Ok(event),
            Err(failure) => {
                report.note_restoration(failure.restoration);
                Err(settling(failure.error))
            }
        }
    });
    match committed {
        Ok(event) => {
            // The commit record is authoritative: a database that cannot follow now is caught up by the next reader.
            if let Err(error) = kernel.sessions.catch_up(&*kernel.files) {
                tracing::warn!(%error, "the session database will be caught up later");
            }
            Ok(Handle::event(event))
        }
        Err(failure) => {
            // Given back for `take_back`; a transaction that failed to commit is over already.
            if report.effects.disposition != Disposition::Restored {
                *lock(&cell.transaction) = transaction;
            }
            Err(failure)
        }
    }
}

/// The session's new state root, if the cell may set it.
fn new_state(cell: &Cell, head: Head) -> Result<Option<Digest>> {
    let facts = lock(&cell.facts);
    match &*facts {
        Some(facts) if (facts.is_changed() && facts.base() != head.state) || !cell.saw_as_one(facts, head.state) => {
            Err(Error::new(
                ErrorKind::Conflict,
                "the session's state was changed by another cell meanwhile",
            )
            .retryable(true))
        }
        Some(facts) if facts.is_changed() => facts.store(&*cell.kernel.objects),
        _ => Ok(head.state),
    }
}

/// Takes every effect back and records the failure.
fn take_back(cell: &Cell, report: &mut Report, failure: Failure, started: Instant) -> Option<Handle> {
    let kernel = &*cell.kernel;
    let Failure {
        outcome,
        phase,
        mut error,
    } = failure;
    let transaction = lock(&cell.transaction)
        .take()
        .filter(|transaction| !transaction.is_empty());
    if let Some(mut transaction) = transaction {
        report.note_effects(transaction.receipts(), transaction.staged_bytes());
        match transaction.restore() {
            Ok(restoration) => report.note_restoration(restoration),
            Err(why) => {
                // What could not be put back is told as a conflict: "restored" alone would claim more than was done.
                let conflict = PathConflict {
                    path: why.path.clone().unwrap_or_else(|| ".".to_owned()),
                    detail: why.detail.clone(),
                    ours: None,
                    theirs: None,
                };
                error = Error::new(
                    ErrorKind::CleanupUncertain,
                    format!(
                        "not everything could be put back ({why}); the next cell tries again. The cell failed with: {error}"
                    ),
                );
                report.note_restoration(Restoration {
                    restored: Vec::new(),
                    conflicts: vec![conflict],
                });
            }
        }
    } else if phase == Phase::Rejected {
        report.effects.disposition = Disposition::NeverAdmitted;
    }
    report.value = None;
    report.event.value = None;
    report.event.effects.clear();
    report.event.handles = report
        .effects
        .conflicts
        .iter()
        .flat_map(|conflict| [conflict.ours, conflict.theirs])
        .flatten()
        .collect();
    report.event.outcome = outcome;
    report.event.disposition = report.effects.disposition;
    report.event.error = Some(ResponseError::new(error, phase));
    report.event.state = StateChange {
        before: cell.head.state,
        after: cell.head.state,
        unchanged: true,
    };
    report.event.ledger.wall_ms = milliseconds(started.elapsed());
    record(kernel, report)
}

/// Records the event of a cell that published nothing; none if even that fails.
fn record(kernel: &Kernel, report: &mut Report) -> Option<Handle> {
    let session = report.event.session.clone();
    let mut attempt = || -> Result<Handle> {
        let _head = kernel
            .sessions
            .lock(&session, &CancelToken::with_timeout(Duration::from_secs(10)))?;
        kernel.sessions.catch_up(&*kernel.files)?;
        let head = kernel.sessions.head(&session)?;
        report.event.previous = head.event;
        if report.event.disposition == Disposition::NeverAdmitted {
            report.event.state = StateChange {
                before: head.state,
                after: head.state,
                unchanged: true,
            };
        }
        let event = report.store_event(kernel)?;
        let head = Head {
            state: head.state,
            event: Some(event),
        };
        kernel.append(&session, &report.event.cell, head, false)?;
        Ok(Handle::event(event))
    };
    let recorded = attempt();
    if let Err(error) = &recorded {
        tracing::error!(%error, "the terminal event could not be recorded");
    }
    recorded.ok()
}

fn blank_event(session: &SessionName, id: &CellId, source: Option<&str>) -> ZeroKernelEvent {
    ZeroKernelEvent {
        source: source.map(|source| Digest::of(source.as_bytes())),
        ..ZeroKernelEvent::blank(session.clone(), id.clone(), now_ms())
    }
}

impl Report {
    /// Takes what the cell noted while it ran.
    fn take_record(&mut self, cell: &Cell) {
        let record = std::mem::take(&mut *lock(&cell.record));
        let ledger = &mut self.event.ledger;
        ledger.bytes_read = cell.bytes_read.load(Ordering::Relaxed);
        (ledger.tokens_raw, ledger.tokens_visible) = record.tokens;
        ledger.confinement = record.confinement;
        self.effects.ignored_paths = record.ignored_paths;
        self.effects.capture = record.capture.unwrap_or(CaptureTier::None);
        self.event.processes = record.processes;
        self.cut = record.cut;
        self.event.external_reads = record.external_reads;
    }

    fn note_effects(&mut self, mut receipts: Vec<EditReceipt>, staged_bytes: u64) {
        for receipt in &mut receipts {
            receipt.status = ReceiptStatus::Committed;
        }
        self.effects.disposition = Disposition::Committed;
        self.effects.receipts = receipts.len() as u64;
        self.event.disposition = Disposition::Committed;
        self.event.ledger.bytes_written = staged_bytes;
        self.event.receipts = receipts;
    }

    fn note_restoration(&mut self, restoration: Restoration) {
        self.effects.disposition = Disposition::Restored;
        self.effects.conflicts = restoration.conflicts;
        for receipt in &mut self.event.receipts {
            receipt.status = ReceiptStatus::Staged;
        }
    }

    fn show_value(&mut self, cell: &Cell, value: &Value, host: &CancelToken) -> Result<()> {
        let kernel = &*cell.kernel;
        let token = host.child(cell.deadline.map(|deadline| deadline.max(Instant::now() + VALUE_TIME)));
        let shown = kernel
            .tokens
            .project_value(value, cell.budgets.value_tokens, &*kernel.objects, &token)?;
        let ledger = &mut self.event.ledger;
        ledger.tokens_raw += shown.raw.tokens;
        ledger.tokens_visible += shown.shown.tokens;
        let text = canonical_json(&shown.value)?;
        ledger.bytes_visible += text.len() as u64;
        self.event.value = Some(kernel.objects.put(&text)?);
        self.event.handles = handles_in(&shown.value.0);
        self.event
            .handles
            .extend(shown.handle.filter(|handle| !self.event.handles.contains(handle)));
        self.value = Some(shown.value);
        Ok(())
    }

    fn show_console(&mut self, cell: &Cell, console: &str) -> Result<()> {
        let kernel = &*cell.kernel;
        if console.is_empty() {
            return Ok(());
        }
        let token = CancelToken::with_timeout(Duration::from_secs(30));
        let how = ProjectText {
            kind: TextKind::Log,
            budget: cell.budgets.console_tokens,
            ..ProjectText::default()
        };
        let shown = kernel.tokens.project_text(console, &how, &*kernel.objects, &token)?;
        let whole = Handle::blob(kernel.objects.put(console.as_bytes())?);
        self.event.console = Some(whole);
        if !shown.cuts.is_empty() {
            self.cut.push(whole);
        }
        let ledger = &mut self.event.ledger;
        ledger.tokens_raw += shown.raw.tokens;
        ledger.tokens_visible += shown.shown.tokens;
        ledger.bytes_visible += shown.text.len() as u64;
        self.console = shown.text;
        Ok(())
    }

    /// Stores the event, complete but for what was noted in the effects' report.
    fn store_event(&mut self, kernel: &Kernel) -> Result<Digest> {
        self.event.conflicts = self.effects.conflicts.clone();
        self.event.ignored_paths = self.effects.ignored_paths;
        self.event.capture = self.effects.capture;
        for cut in std::mem::take(&mut self.cut) {
            if !self.event.handles.contains(&cut) {
                self.event.handles.push(cut);
            }
        }
        store_event(kernel, &mut self.event)
    }

    fn into_response(self, kernel: &Kernel, event: Option<Handle>) -> ZeroKernelResponse {
        if let Some(event) = event {
            kernel.subscribers.publish(event, &self.event);
        }
        let Self {
            event: recorded,
            value,
            console,
            effects,
            cut: _,
        } = self;
        ZeroKernelResponse {
            protocol: Protocol::ZeroKernel,
            outcome: recorded.outcome,
            value,
            error: recorded.error,
            effects,
            handles: recorded.handles,
            event,
            state: recorded.state,
            ledger: recorded.ledger,
            console,
        }
    }
}

/// Console lines as one text. The frame keeps the first and the last ones; how many it left out between them is said first.
fn console_text(ended: &FrameOutcome) -> String {
    let lines = ended.console.iter().map(|line| match line.level {
        ConsoleLevel::Log | ConsoleLevel::Info => format!("{}\n", line.text),
        level => format!("[{}] {}\n", level.as_str(), line.text),
    });
    let omitted = (ended.console_omitted > 0).then(|| {
        format!(
            "[{} lines between the first and the last were left out]\n",
            ended.console_omitted
        )
    });
    omitted.into_iter().chain(lines).collect()
}

fn milliseconds(time: Duration) -> f64 {
    // Microseconds are as fine as a ledger needs.
    time.as_micros() as f64 / 1000.0
}
