//! Acquiring the workspace lease, and ending what dead cells left open: whoever gets the lease does it first.

use zero_contracts::files::{OpenTransaction, Recovered, RecoveredOutcome};
use zero_contracts::response::{Disposition, Phase, ResponseError};
use zero_contracts::{CancelToken, CellId, Epoch, Error, ErrorKind, Handle, ZeroKernelEvent};
use zero_supervisor::lease::Lease;

use crate::cell::{Cell, lock};
use crate::config::Result;
use crate::kernel::{Kernel, new_cell_id};
use crate::ops::run::acquire_lease;
use crate::record::{self, now_ms};
use crate::sessions::{Head, HeadLock};

impl Kernel {
    /// Waits for the workspace lease and ends what dead cells left open.
    #[tracing::instrument(level = "debug", skip_all, fields(cell = cell.as_str()))]
    pub(crate) fn acquire(&self, cell: &CellId, token: &CancelToken) -> Result<Lease> {
        let lease = acquire_lease(self, cell, token, true)?;
        self.recover(&lease, token)?;
        Ok(lease)
    }

    /// Ends what dead cells left open if nobody holds the lease; otherwise the holder will.
    pub(crate) fn recover_if_free(&self, token: &CancelToken) -> Result<()> {
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

    /// Waits for the head of a cell's session. If the cell saw both files and state, what a dead cell of the session left half
    /// published is ended first: then the state that belongs to the files is known. A living one holds the head while it
    /// publishes.
    pub(crate) fn lock_head(&self, cell: &Cell, token: &CancelToken) -> Result<HeadLock> {
        let both = cell.has_looked() && lock(&cell.facts).is_some();
        for _ in 0..3 {
            let head = self.sessions.lock(&cell.session, token)?;
            let other =
                |open: &OpenTransaction| !open.committed && open.cell != cell.id && open.session == cell.session;
            if !both || !self.files.has_open_transaction()? || !self.files.open_transactions()?.iter().any(other) {
                return Ok(head);
            }
            drop(head);
            self.recover_if_free(token)?;
        }
        // Somebody living has it open: a command of it runs on the live tree.
        self.sessions.lock(&cell.session, token)
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
        let mut event = ZeroKernelEvent::blank(dead.session.clone(), dead.cell.clone(), now_ms());
        event.error = Some(ResponseError::new(error, Phase::Running));
        event.disposition = Disposition::Restored;
        (event.state.before, event.state.after) = (head.state, head.state);
        event.handles = restoration
            .conflicts
            .iter()
            .flat_map(|conflict| [conflict.ours, conflict.theirs])
            .flatten()
            .collect();
        event.conflicts = restoration.conflicts;
        event.previous = head.event;
        let digest = record::store_event(self, &mut event)?;
        let head = Head {
            state: head.state,
            event: Some(digest),
        };
        self.append(&dead.session, &dead.cell, head, false)?;
        self.subscribers.publish(Handle::event(digest), &event);
        Ok(())
    }
}
