//! Ending what dead cells left open.

use std::sync::Arc;

use zero_contracts::files::{Recovered, RecoveredOutcome};
use zero_contracts::{CancelToken, Epoch, Error};

use crate::capture::Capture;
use crate::engine::Shared;
use crate::record::Record;
use crate::restore;

/// Rolls committed transactions forward and takes the others back, the newest first. The caller holds the lease.
pub(crate) fn recover(shared: &Arc<Shared>, epoch: Epoch, token: &CancelToken) -> Result<Vec<Recovered>, Error> {
    shared.fence(epoch)?;
    let mut recovered = Vec::new();
    for mut open in shared.journal.open()?.into_iter().rev() {
        token.check()?;
        let cell = open.cell.clone();
        let outcome = match open.commit {
            Some(commit) => {
                // The record was written last of all: the tree is whole, and only temporaries are left.
                for batch in &open.batches {
                    restore::purge(shared, batch.tag)?;
                }
                shared
                    .journal
                    .append(vec![Record::Settled { cell: cell.clone() }], false)?;
                RecoveredOutcome::Committed(commit)
            }
            None => {
                let blind = open.baseline.is_some();
                if let Some(baseline) = &open.baseline {
                    let finished = Capture::resume(shared, baseline)?.finish(shared, &cell, token)?;
                    open.batches.push(finished.batch);
                }
                let restoration = restore::restore(shared, &open.batches, blind)?;
                shared
                    .journal
                    .append(vec![Record::Restored { cell: cell.clone() }], false)?;
                RecoveredOutcome::Restored(restoration)
            }
        };
        recovered.push(Recovered {
            cell,
            session: open.session,
            outcome,
        });
    }
    recovered.reverse();
    Ok(recovered)
}
