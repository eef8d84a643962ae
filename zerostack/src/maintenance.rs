//! Keeping a store small: pruning of events, collection of objects, removal of lock files.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;
use zero_contracts::files::Collected;
use zero_contracts::{CancelToken, Digest};

use crate::config::Result;
use crate::kernel::{Kernel, ZeroKernel};
use crate::outbox::EffectFilter;

/// What is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct GcOptions {
    /// Forget all but this many of each session's latest events, and what only they hold: their values and outputs, and
    /// the means to undo what they committed. Without it every event is kept. At least one always is.
    pub keep_events: Option<u64>,
}

/// What a collection did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GcReport {
    /// Events that were forgotten.
    pub events_pruned: u64,
    /// Lock files of sessions that were removed.
    pub lock_files_removed: u64,
    /// Objects kept and removed.
    pub objects: Collected,
    /// Bytes that went from the structure index: facts of contents that no file of the workspace has any more.
    pub index_freed_bytes: u64,
}

impl ZeroKernel {
    /// Removes what nothing refers to any more. The chains of the events that are kept stay verifiable: each knows the
    /// digest of the event before its first one.
    ///
    /// # Errors
    /// `busy` while cells live, in whatever process; `cancelled` and `deadline` from the token; `corrupt`, `io`.
    #[tracing::instrument(level = "debug", skip_all)]
    pub fn gc(&self, options: &GcOptions, token: &CancelToken) -> Result<GcReport> {
        let kernel = &*self.kernel;
        kernel.recover_if_free(token)?;
        kernel.sessions.catch_up(&*kernel.files)?;
        // The outbox, too, must be past what goes from the journal; what it was asked to do stays readable.
        let effects = self.effects(&EffectFilter::default())?;
        let mut report = GcReport::default();
        if let Some(keep) = options.keep_events {
            for session in kernel.sessions.names()? {
                let _head = kernel.sessions.lock(&session, token)?;
                report.events_pruned += kernel.sessions.prune(&session, keep.max(1))?;
            }
            kernel.prune_journal()?;
        }
        let (mut roots, opaque) = kernel.reachable(token)?;
        roots.extend(effects.iter().map(|effect| effect.intent));
        report.objects = kernel.files.collect_around(&roots, &opaque, token)?;
        report.index_freed_bytes = kernel.structure.collect_absent(&*kernel.files.live(), token)?;
        report.lock_files_removed = kernel.sessions.sweep_locks()?;
        Ok(report)
    }
}

impl Kernel {
    /// Forgets the commits of events that were pruned, up to the first one that is kept.
    fn prune_journal(&self) -> Result<()> {
        let mut last = None;
        for commit in self.files.commits_after(0)? {
            if self.sessions.knows(&commit.cell)? {
                break;
            }
            last = Some(commit.sequence);
        }
        let Some(last) = last else { return Ok(()) };
        // The journal may go only where the database is durably past it.
        self.sessions.checkpoint()?;
        self.files.prune(last)
    }

    /// What sessions and events reach, and the events themselves, which are kept for what they say and not for the chain
    /// behind them.
    fn reachable(&self, token: &CancelToken) -> Result<(Vec<Digest>, Vec<Digest>)> {
        let events = self.sessions.all_events()?;
        let mut roots: HashSet<Digest> = events.iter().copied().collect();
        roots.extend(
            self.sessions
                .heads()?
                .into_iter()
                .flat_map(|head| [head.state, head.event])
                .flatten(),
        );
        for event in &events {
            token.check()?;
            // A damaged event names nothing any more.
            let Ok(bytes) = self.objects.get(event) else { continue };
            if let Ok(event) = serde_json::from_slice::<Value>(&bytes) {
                named(&event, &mut roots);
            }
        }
        let mut opaque = events;
        opaque.extend(self.files.commits_after(0)?.into_iter().map(|commit| commit.seal.event));
        Ok((roots.into_iter().collect(), opaque))
    }
}

/// Collects the digests that an event names, but for those of other events.
fn named(event: &Value, found: &mut HashSet<Digest>) {
    match event {
        Value::String(text) => {
            let hex = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
            let runs = text.as_bytes().chunk_by(|a, b| hex(a) == hex(b));
            let digests = runs.filter(|run| run.len() == 64);
            found.extend(digests.filter_map(|run| std::str::from_utf8(run).ok()?.parse::<Digest>().ok()));
        }
        Value::Array(elements) => elements.iter().for_each(|element| named(element, found)),
        Value::Object(members) => {
            let others = members.iter().filter(|(name, _)| *name != "previous" && *name != "act");
            others.for_each(|(_, member)| named(member, found));
        }
        _ => {}
    }
}
