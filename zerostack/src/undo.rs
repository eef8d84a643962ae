//! Undo: what a cell committed is taken back by a transaction of its own.

use zero_contracts::edit::{EditReceipt, ReceiptStatus};
use zero_contracts::event::HostAct;
use zero_contracts::response::Disposition;
use zero_contracts::{Error, ErrorKind, Handle, UndoOptions, UndoReport, ZeroKernelEvent};

use crate::cell::lock;
use crate::config::Result;
use crate::history::event_digest;
use crate::kernel::ZeroKernel;
use crate::settle;

impl ZeroKernel {
    /// Takes back what the cell of an event committed, commands included: whole, or only some paths. A path that is not
    /// what the cell left any more is left as it is, and reported with the three versions. The undo is a transaction of
    /// its own, which can be undone by its own event. Facts of the session are not undone.
    ///
    /// # Errors
    /// `invalid_input` for a handle that names no event, an event that committed nothing, or a path at or below which the
    /// cell changed nothing (`accepted` has those that it changed); `not_found` if the event or
    /// its transaction is not kept any more; `busy` while another cell holds the workspace; `conflict` if a file changed
    /// while it was taken back; `cancelled`, `corrupt`, `io`.
    #[tracing::instrument(level = "debug", skip_all, fields(event = %event))]
    pub fn undo(&self, event: &Handle, options: &UndoOptions) -> Result<UndoReport> {
        let digest = event_digest(event)?;
        let kernel = &self.kernel;
        let token = self.host_token();
        let recorded = kernel.event(&digest)?;
        if recorded.disposition != Disposition::Committed {
            return Err(
                Error::invalid("the cell committed no effects: there is nothing to take back").with_path("event"),
            );
        }
        named_paths_were_changed(&recorded, options)?;
        let cell = self.host_cell(kernel.begin(&self.scope.session, &token)?);
        if !options.dry_run {
            cell.lease(&token)?;
        }
        let reversal = kernel
            .files
            .revert(
                &recorded.cell,
                options.paths.as_deref(),
                cell.begin_transaction(),
                &token,
            )
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
                receipts: committed(reversal.receipts),
                conflicts: reversal.conflicts,
                state_undone: false,
                event: response.event,
            }),
        }
    }
}

/// How many of the paths that a cell changed are told to who named another.
const TOLD_PATHS: usize = 20;

/// Refuses a path that the cell changed nothing at or below: it is misspelt, and to do nothing would look like success.
fn named_paths_were_changed(event: &ZeroKernelEvent, options: &UndoOptions) -> Result<()> {
    let changed = || event.receipts.iter().map(|receipt| &receipt.path);
    for path in options.paths.iter().flatten() {
        if !changed().any(|changed| changed.is_within(path)) {
            let told = changed().take(TOLD_PATHS).map(ToString::to_string);
            return Err(Error::invalid(format!("the cell changed nothing at or below `{path}`"))
                .with_path("paths")
                .with_accepted(told.collect::<Vec<_>>()));
        }
    }
    Ok(())
}

/// Receipts of what was staged, now that it is committed.
fn committed(mut receipts: Vec<EditReceipt>) -> Vec<EditReceipt> {
    for receipt in &mut receipts {
        receipt.status = ReceiptStatus::Committed;
    }
    receipts
}
