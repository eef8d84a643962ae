//! Ending what dead cells left open.

mod forward;

use std::collections::HashSet;
use std::sync::Arc;

use rustix::fs::Dir;
use zero_contracts::files::{Recovered, RecoveredOutcome};
use zero_contracts::{CancelToken, Epoch, Error, WorkspacePath};

use crate::capture::Capture;
use crate::engine::Shared;
use crate::record::Record;
use crate::restore;
use crate::tree::{os, staging_tag};

/// Rolls committed transactions forward and takes the others back, the newest first. The caller holds the lease.
pub(crate) fn recover(shared: &Arc<Shared>, epoch: Epoch, token: &CancelToken) -> Result<Vec<Recovered>, Error> {
    shared.fence(epoch)?;
    if !shared.journal.open()?.is_empty() {
        shared.flush_everything()?;
    }
    // Before anything is told from the tree: they are no part of it.
    sweep(shared, Sweep::Unknown)?;
    let mut recovered = Vec::new();
    for mut open in shared.journal.open()?.into_iter().rev() {
        token.check()?;
        let cell = open.cell.clone();
        let outcome = match open.commit {
            Some(commit) => {
                for batch in &open.batches {
                    forward::complete(shared, batch)?;
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
                    let finished = Capture::resume(shared, baseline, &open.batches)?.finish(shared, &cell, token)?;
                    open.batches.push(finished.batch);
                }
                let restoration = restore::restore(shared, &cell, &open.batches, blind)?;
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
    sweep(shared, Sweep::All)?;
    crate::private::sweep(shared)?;
    recovered.reverse();
    Ok(recovered)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sweep {
    /// Only what the journal should know and does not.
    Unknown,
    /// That of transactions that are over, too; there must be no other.
    All,
}

/// Removes staging directories of transactions that are over: a loss of power may keep the journal's last word and lose
/// the removal.
///
/// One that the journal does not know goes only if this store made it, and the journal shows that the frame that told of
/// it was lost: then no effect of it was begun, for that waits until the frame is durable; or it is left of taking back
/// what a command did, which begins anew. Another may hold what it displaced; it is not touched.
fn sweep(shared: &Shared, which: Sweep) -> Result<(), Error> {
    let root = WorkspacePath::root();
    let fail = |e| os(e, "listing", &root);
    let mut unknown = HashSet::new();
    for entry in Dir::read_from(shared.tree.root()).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        unknown.extend(staging_tag(entry.file_name().to_bytes()));
    }
    let parked = crate::parked::tags(shared)?;
    if unknown.is_empty() && parked.is_empty() {
        return Ok(());
    }
    let (mut over, mut others) = (HashSet::new(), HashSet::new());
    for segment in shared.journal.segments()? {
        for (_, number, record) in shared.journal.scan_segment(segment)?.records {
            let own = match &record {
                Record::Intents { batch, .. } | Record::CaptureEnded { batch, .. } => Some(batch.tag),
                _ => None,
            };
            if let Some(tag) = own
                && (unknown.remove(&tag) || parked.contains(&tag))
            {
                over.insert(tag);
            }
            if own != Some(shared.tag(number)) {
                others.insert(shared.tag(number));
            }
        }
    }
    let next = shared.journal.next()?;
    let ahead = |tag: u64| (tag >> 32) as u32 == shared.id && u64::from(tag as u32) >= next;
    for tag in unknown {
        if others.contains(&tag) || ahead(tag) {
            restore::purge_staging(shared, tag)?;
        }
    }
    if which == Sweep::All {
        over.into_iter().try_for_each(|tag| restore::purge(shared, tag))?;
    }
    Ok(())
}
