//! Undo: what a cell committed is taken back by a transaction of its own.

use zero_contracts::event::HostAct;
use zero_contracts::files::BeginTransaction;
use zero_contracts::response::Disposition;
use zero_contracts::{Error, ErrorKind, Handle, HandleKind, UndoOptions, UndoReport};

use crate::cell::lock;
use crate::config::Result;
use crate::kernel::ZeroKernel;
use crate::settle;

impl ZeroKernel {
    /// Takes back what the cell of an event committed, commands included: whole, or only some paths. A path that is not
    /// what the cell left any more is left as it is, and reported with the three versions. The undo is a transaction of
    /// its own, which can be undone by its own event. Facts of the session are not undone.
    ///
    /// # Errors
    /// `invalid_input` for a handle that names no event, or an event that committed nothing; `not_found` if the event or
    /// its transaction is not kept any more; `busy` while another cell holds the workspace; `conflict` if a file changed
    /// while it was taken back; `cancelled`, `corrupt`, `io`.
    #[tracing::instrument(level = "debug", skip_all, fields(event = %event))]
    pub fn undo(&self, event: &Handle, options: &UndoOptions) -> Result<UndoReport> {
        if event.kind != HandleKind::Event {
            return Err(Error::invalid(format!("`{event}` does not name an event"))
                .with_path("event")
                .with_accepted(["z://event/<64 hexadecimal digits>"]));
        }
        let kernel = &self.kernel;
        let token = self.host_token();
        let recorded = kernel.event(&event.digest)?;
        if recorded.disposition != Disposition::Committed {
            return Err(
                Error::invalid("the cell committed no effects: there is nothing to take back").with_path("event"),
            );
        }
        let cell = self.host_cell(kernel.begin(&self.scope.session, &token)?);
        if !options.dry_run {
            cell.lease(&token)?;
        }
        let begin = BeginTransaction {
            cell: cell.id.clone(),
            session: cell.session.clone(),
            staged_bytes: cell.budgets.staged_bytes,
        };
        let reversal = kernel
            .files
            .revert(&recorded.cell, options.paths.as_deref(), begin, &token)
            .map_err(|e| match e.kind {
                ErrorKind::NotFound => Error::new(
                    e.kind,
                    format!("what {event} committed is not kept any more: {}", e.detail),
                ),
                _ => e,
            })?;
        let mut transaction = reversal.transaction;
        if options.dry_run || transaction.is_empty() {
            transaction.restore()?;
            return Ok(UndoReport {
                disposition: Disposition::None,
                receipts: reversal.receipts,
                conflicts: reversal.conflicts,
                state_undone: false,
                event: None,
            });
        }
        *lock(&cell.transaction) = Some(transaction);
        let act = HostAct::Undo { of: event.digest };
        let response = settle::settle_act(&cell, act, reversal.conflicts.clone(), &token);
        match response.error {
            Some(error) => Err(error.into()),
            None => Ok(UndoReport {
                disposition: response.effects.disposition,
                receipts: reversal.receipts,
                conflicts: reversal.conflicts,
                state_undone: false,
                event: response.event,
            }),
        }
    }
}
