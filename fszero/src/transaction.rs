//! One cell's transaction: staged, published together, or taken back without a trace.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use zero_contracts::apply::FileOperation;
use zero_contracts::edit::EditReceipt;
use zero_contracts::files::{
    BeginTransaction, Captured, CommandView, CommitFailure, CommitRecord, CommitSeal, ReadLog, Restoration,
};
use zero_contracts::response::{CaptureTier, PathConflict};
use zero_contracts::{CancelToken, Epoch, Error, ErrorKind, SourceView, Transaction};

use crate::capture::{Baseline, Capture};
use crate::engine::Shared;
use crate::node::Node;
use crate::overlay::Body;
use crate::private::Private;
use crate::publish::{Owed, Publication};
use crate::record::{Batch, Record};
use crate::restore;
use crate::round::Round;
use crate::snapshot::Manifest;
use crate::stage::{Planned, Stager, Work};
use crate::view::View;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Open,
    Over,
}

/// A transaction of the engine.
pub(crate) struct Cell {
    shared: Arc<Shared>,
    begin: BeginTransaction,
    work: Work,
    /// The work before each step (a stage, a publication, a capture) and the number of batches then: a savepoint is how
    /// many steps there were.
    history: Vec<(Work, usize)>,
    /// What is in the live tree already, in order.
    batches: Vec<Batch>,
    capture: Option<Capture>,
    /// What the last capture began with.
    baseline: Option<Baseline>,
    /// The layers that commands work in, once there was one that did.
    private: Option<Private>,
    /// Whether a command's effects could not be told.
    blind: bool,
    phase: Phase,
    /// What could not be taken back earlier: restoration has to tell it.
    owed: Vec<PathConflict>,
    /// What the last refused publication could not take back.
    left: Vec<PathConflict>,
    /// Taking something back failed: some of it may be done and not flushed.
    torn: bool,
    _live: OwnedFd,
}

impl Cell {
    pub fn begin(shared: Arc<Shared>, begin: BeginTransaction) -> Result<Self, Error> {
        let live = shared.live_lock(false, true)?;
        let live = live.ok_or_else(|| Error::new(ErrorKind::Busy, "the store is being collected"))?;
        Ok(Self {
            shared,
            begin,
            work: Work::default(),
            history: Vec::new(),
            batches: Vec::new(),
            capture: None,
            baseline: None,
            private: None,
            blind: false,
            phase: Phase::Open,
            owed: Vec::new(),
            left: Vec::new(),
            torn: false,
            _live: live,
        })
    }

    fn check(&self) -> Result<(), Error> {
        match self.phase {
            Phase::Open if self.blind => Err(Error::new(
                ErrorKind::Conflict,
                "what a command changed could not be told: this transaction can only be restored",
            )),
            Phase::Open => Ok(()),
            Phase::Over => Err(Error::invalid("this transaction is over")),
        }
    }

    /// Runs a closure that stages; what it staged counts only if all of it succeeds.
    pub fn staging<T>(
        &mut self,
        reads: &ReadLog,
        token: &CancelToken,
        run: impl FnOnce(&mut Stager<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.check()?;
        let budget = self.begin.staged_bytes;
        let mut stager = Stager {
            shared: &self.shared,
            work: self.work.clone(),
            reads,
            token,
            budget,
        };
        let result = run(&mut stager)?;
        let next = stager.work;
        self.step(next);
        Ok(result)
    }

    fn step(&mut self, next: Work) {
        self.history
            .push((std::mem::replace(&mut self.work, next), self.batches.len()));
    }

    /// Stages what turns one manifest's tree into another's.
    pub fn stage_tree(&mut self, present: &Manifest, target: &Manifest, token: &CancelToken) -> Result<(), Error> {
        let wanted: std::collections::BTreeMap<_, _> = target.iter().map(|(path, node)| (path, node)).collect();
        let have: std::collections::BTreeMap<_, _> = present.iter().map(|(path, node)| (path, node)).collect();
        self.staging(&ReadLog::new(), token, |stager| {
            // Deepest first, so that directories are empty when their turn comes.
            for (path, node) in present.iter().rev() {
                let gone = wanted.get(path).is_none_or(|wanted| wanted.kind() != node.kind());
                if gone {
                    token.check()?;
                    let view = View {
                        shared: Arc::clone(stager.shared),
                        overlay: stager.work.overlay.clone(),
                        live: false,
                    };
                    if node.is_directory() && !view.entries(path)?.is_empty() {
                        continue; // It holds what is ignored.
                    }
                    stager.take(path)?;
                }
            }
            for (path, node) in target {
                token.check()?;
                match have.get(path) {
                    Some(have) if *have == node => {}
                    Some(have) if have.kind() == node.kind() && have.digest() == node.digest() => {
                        stager.set_mode(path, node.mode())?
                    }
                    _ => {
                        let body = matches!(node, Node::File { .. }).then_some(Body::Object);
                        stager.put(path, node, body)?;
                    }
                }
            }
            Ok(())
        })
    }

    fn publication<'a>(&'a self, epoch: Epoch, token: &'a CancelToken) -> Publication<'a> {
        Publication {
            shared: &self.shared,
            cell: &self.begin.cell,
            session: &self.begin.session,
            private: self.private.as_ref(),
            epoch,
            token,
        }
    }

    /// Publishes what is staged; on a refusal only what this call published is taken back. For `owed` see
    /// [`Publication::publish`].
    fn land(&mut self, epoch: Epoch, token: &CancelToken, owed: Option<&mut Owed>) -> Result<(), Box<CommitFailure>> {
        let mut begun = Vec::new();
        let effects: Vec<_> = self.work.effects.iter().cloned().collect();
        let publication = self.publication(epoch, token);
        let published = publication.publish(effects.iter().cloned(), &mut begun, owed);
        match published {
            Ok(()) => {
                if !effects.is_empty() {
                    // Even where none of them came to anything: what a command does next must not be hidden by them.
                    let mut next = self.work.clone();
                    next.land();
                    self.step(next);
                    self.batches.extend(begun);
                }
                Ok(())
            }
            Err(refusal) => {
                let mut restoration = Restoration::default();
                let withdrawn = self.put_back(&begun).and_then(|done| {
                    restoration = done;
                    self.withdraw(&begun)
                });
                if withdrawn.is_err() {
                    // What could not be put back now is left to the next recovery, which the journal calls for.
                    self.batches.extend(begun);
                }
                self.left = restoration.conflicts.clone();
                restoration.conflicts.extend(refusal.conflict);
                Err(Box::new(CommitFailure {
                    error: refusal.error,
                    restoration,
                }))
            }
        }
    }

    /// Takes batches back. What an attempt that failed left is made durable before the next.
    fn put_back(&mut self, batches: &[Batch]) -> Result<Restoration, Error> {
        if std::mem::replace(&mut self.torn, true) {
            self.shared.flush_everything()?;
        }
        let restoration = restore::restore(&self.shared, &self.begin.cell, batches, false)?;
        self.torn = false;
        Ok(restoration)
    }

    /// Notes in the journal that batches are taken back.
    fn withdraw(&self, batches: &[Batch]) -> Result<(), Error> {
        let withdrawn = |batch: &Batch| Record::Withdrawn {
            cell: self.begin.cell.clone(),
            tag: batch.tag,
        };
        let records: Vec<_> = batches.iter().map(withdrawn).collect();
        if !records.is_empty() {
            // What a command did must not be told anew after something published before it was taken back, too.
            let sync = self.shared.power() && batches.iter().any(Batch::is_of_command);
            self.shared.journal.append(records, sync)?;
        }
        Ok(())
    }

    /// Takes back everything that is in the live tree.
    fn take_back(&mut self) -> Result<Restoration, Error> {
        self.phase = Phase::Over;
        self.drop_private();
        if let Some(capture) = self.capture.take() {
            // A command ran and nobody asked what it did: find out, so that it can be taken back.
            self.batches.push(
                capture
                    .finish(&self.shared, &self.begin.cell, &CancelToken::new())?
                    .batch,
            );
        }
        self.work = Work::default();
        self.history.clear();
        let batches = std::mem::take(&mut self.batches);
        let restored = self.put_back(&batches);
        self.batches = batches;
        let mut restoration = restored?;
        restoration.conflicts.splice(0..0, std::mem::take(&mut self.owed));
        if self.journalled()? {
            self.shared.journal.append(
                vec![Record::Restored {
                    cell: self.begin.cell.clone(),
                }],
                false,
            )?;
        }
        self.batches.clear();
        Ok(restoration)
    }

    /// Removes the layers of commands, with what waits in them.
    fn drop_private(&mut self) {
        if let Some(private) = self.private.take() {
            private.discard();
        }
    }

    /// Stages what commands did in the private view.
    fn end_view(&mut self, token: &CancelToken) -> Result<Captured, Error> {
        let Some(mut private) = self.private.take() else {
            return Ok(Captured::default());
        };
        let collected = self.staging(&ReadLog::new(), token, |stager| private.collect(stager));
        let ignored_paths = private.carried();
        self.private = Some(private);
        match collected {
            Ok(receipts) => Ok(Captured {
                receipts,
                ignored_paths,
            }),
            Err(failed) => {
                self.blind = true;
                Err(failed)
            }
        }
    }

    /// Whether commands work in a private view now.
    fn has_open_view(&self) -> bool {
        self.private.as_ref().is_some_and(Private::is_open)
    }

    /// Tells whether the journal knows of this transaction.
    fn journalled(&self) -> Result<bool, Error> {
        Ok(self
            .shared
            .journal
            .open()?
            .iter()
            .any(|open| open.cell == self.begin.cell))
    }

    fn committed(&self) -> Option<CommitRecord> {
        let open = self.shared.journal.open().ok()?;
        open.into_iter().find(|open| open.cell == self.begin.cell)?.commit
    }

    fn try_commit(
        &mut self,
        epoch: Epoch,
        seal: CommitSeal,
        token: &CancelToken,
    ) -> Result<CommitRecord, Box<CommitFailure>> {
        let plain = |error: Error| {
            Box::new(CommitFailure {
                error,
                restoration: Restoration::default(),
            })
        };
        self.check().map_err(plain)?;
        if self.capture.is_some() || self.has_open_view() {
            return Err(plain(Error::invalid(
                "a command's effects are still to be told: end the capture first",
            )));
        }
        token.check().map_err(plain)?;
        self.shared.fence(epoch).map_err(plain)?;
        if let Some(first) = self.private.as_ref().and_then(|private| private.doubts.first()) {
            let error = Error::new(ErrorKind::Conflict, format!("{}; nothing was changed", first.detail));
            return Err(Box::new(CommitFailure {
                error: error.with_path(&first.path).retryable(true),
                restoration: Restoration {
                    conflicts: self.private.as_ref().map(|p| p.doubts.clone()).unwrap_or_default(),
                    ..Restoration::default()
                },
            }));
        }
        let mut owed = Owed::default();
        self.land(epoch, token, Some(&mut owed))?;
        let late = std::mem::take(&mut owed.objects);
        self.record(epoch, seal, token, owed.round).map_err(|e| {
            self.shared.store.put_back(late);
            plain(e)
        })
    }

    /// Writes the commit record: the point of no return. What `round` holds becomes durable together with it.
    fn record(&self, epoch: Epoch, seal: CommitSeal, token: &CancelToken, round: Round) -> Result<CommitRecord, Error> {
        token.check()?;
        let power = self.shared.power();
        if power && self.batches.iter().any(Batch::is_captured) {
            // What commands wrote was flushed by nobody.
            let synced = self.shared.seam.sync_all(self.shared.tree.root());
            synced.map_err(|e| Error::from_io(&e, "flushing what commands wrote"))?;
        }
        let mut objects = Vec::new();
        let pending = self.shared.pending_inline(&mut objects)?;
        if let Err(e) = self.shared.store.make_durable(&pending.large) {
            pending.give_back(&self.shared.store);
            return Err(e);
        }
        let cell = self.begin.cell.clone();
        let record = Record::Commit {
            cell: cell.clone(),
            epoch,
            seal: seal.clone(),
            objects,
        };
        match self.shared.journal.append_with(vec![record], power.then_some(round)) {
            Ok(sequence) => Ok(CommitRecord {
                sequence,
                cell,
                epoch,
                seal,
            }),
            Err(e) => {
                pending.give_back(&self.shared.store);
                Err(e)
            }
        }
    }
}

impl Transaction for Cell {
    fn stage(
        &mut self,
        operations: &[FileOperation],
        reads: &ReadLog,
        token: &CancelToken,
    ) -> Result<Vec<EditReceipt>, Error> {
        self.staging(reads, token, |stager| {
            let mut receipts = Vec::new();
            for operation in operations {
                receipts.extend(stager.apply(operation)?);
            }
            Ok(receipts)
        })
    }

    fn view(&self) -> Arc<dyn SourceView> {
        Arc::new(View {
            shared: Arc::clone(&self.shared),
            overlay: self.work.overlay.clone(),
            live: false,
        })
    }

    fn savepoint(&self) -> u64 {
        self.history.len() as u64
    }

    fn roll_back_to(&mut self, savepoint: u64, token: &CancelToken) -> Result<Restoration, Error> {
        self.check()?;
        token.check()?;
        let at = usize::try_from(savepoint).unwrap_or(usize::MAX);
        if at > self.history.len() {
            return Err(Error::invalid(
                "that savepoint is of another transaction, or was rolled back itself",
            ));
        }
        if self.capture.is_some() || self.has_open_view() {
            self.end_capture(token)?;
        }
        // The next view is laid from what is staged then.
        self.drop_private();
        let Some((work, batches)) = self.history.get(at).cloned() else {
            return Ok(Restoration::default());
        };
        let late = self.batches.get(batches..).unwrap_or_default().to_vec();
        let mut restoration = Restoration::default();
        if !late.is_empty() {
            restoration = self.put_back(&late)?;
            self.withdraw(&late)?;
            self.batches.truncate(batches);
        }
        self.work = work;
        self.history.truncate(at);
        match restoration.conflicts.first() {
            None => Ok(restoration),
            Some(first) => {
                // Part of what was to be taken back is still there: the transaction is no longer what it says.
                self.owed.extend(restoration.conflicts.iter().cloned());
                self.blind = true;
                Err(Error::new(
                    ErrorKind::Conflict,
                    format!("not everything could be taken back: {}", first.detail),
                )
                .with_path(&first.path))
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.work.overlay.is_empty()
            && self
                .work
                .effects
                .iter()
                .all(|planned| matches!(planned, Planned::Nothing))
            && self.batches.iter().all(|batch| batch.effects.is_empty())
            && self.capture.is_none()
            && !self.has_open_view()
            && !self.blind
    }

    fn staged_bytes(&self) -> u64 {
        self.work.bytes
    }

    fn receipts(&self) -> Vec<EditReceipt> {
        self.work.receipts(&self.shared)
    }

    fn materialize(&mut self, epoch: Epoch, token: &CancelToken) -> Result<(), Error> {
        self.check()?;
        token.check()?;
        self.shared.fence(epoch)?;
        self.land(epoch, token, None).map_err(|failure| {
            self.owed.append(&mut self.left);
            failure.error
        })?;
        // What comes next may be a command.
        self.batches
            .iter()
            .try_for_each(|batch| crate::parked::park(&self.shared, batch))
    }

    fn begin_capture(&mut self, epoch: Epoch, token: &CancelToken) -> Result<CaptureTier, Error> {
        self.check()?;
        if self.capture.is_some() || self.has_open_view() {
            return Err(Error::invalid("a capture is under way already"));
        }
        self.materialize(epoch, token)?;
        let (cell, session) = (&self.begin.cell, &self.begin.session);
        let last = self.baseline.as_ref();
        match Capture::begin(&self.shared, cell, session, epoch, &self.batches, last, token)? {
            Some(capture) => {
                self.baseline = Some(capture.baseline().clone());
                self.capture = Some(capture);
                Ok(CaptureTier::Baseline)
            }
            None => Ok(CaptureTier::UnattributedWrites),
        }
    }

    fn open_view(&mut self, token: &CancelToken) -> Result<CommandView, Error> {
        self.check()?;
        if self.capture.is_some() || self.has_open_view() {
            return Err(Error::invalid("a capture is under way already"));
        }
        if !self.batches.is_empty() {
            return Err(Error::invalid(
                "part of this transaction is in the live tree already: its commands cannot have a private view",
            ));
        }
        let mut private = match self.private.take() {
            Some(private) => private,
            None => Private::new(&self.shared)?,
        };
        match private.open(&self.work.overlay, token) {
            Ok(view) => {
                self.private = Some(private);
                Ok(view)
            }
            Err(failed) => {
                // What was laid in part is laid anew by the next one.
                private.discard();
                Err(failed)
            }
        }
    }

    fn end_capture(&mut self, token: &CancelToken) -> Result<Captured, Error> {
        self.check()?;
        if self.has_open_view() {
            return self.end_view(token);
        }
        let Some(capture) = self.capture.take() else {
            return Ok(Captured::default());
        };
        match capture.clone().finish(&self.shared, &self.begin.cell, token) {
            Ok(finished) => {
                let mut next = self.work.clone();
                // The root's own mode is an effect, but nothing that an operation could build on.
                for (path, before, after) in finished.changes.iter().filter(|(path, ..)| !path.is_root()) {
                    next.captured(path, before.as_ref(), after.as_ref());
                }
                self.step(next);
                self.batches.push(finished.batch);
                Ok(finished.captured)
            }
            Err(failed) => {
                // Restoration has to find out, or to say that it cannot.
                self.capture = Some(capture);
                self.blind = true;
                Err(failed)
            }
        }
    }

    fn commit(
        &mut self,
        epoch: Epoch,
        seal: CommitSeal,
        token: &CancelToken,
    ) -> Result<CommitRecord, Box<CommitFailure>> {
        match self.try_commit(epoch, seal, token) {
            Ok(record) => {
                self.phase = Phase::Over;
                if let Some(private) = &self.private {
                    private.carry();
                }
                self.drop_private();
                // The rest only removes temporaries; who dies here leaves it to the next recovery.
                let purged = self
                    .batches
                    .iter()
                    .try_for_each(|batch| restore::purge(&self.shared, batch.tag));
                if purged.is_ok() && self.journalled().unwrap_or(false) {
                    let settled = Record::Settled {
                        cell: self.begin.cell.clone(),
                    };
                    let _ = self.shared.journal.append(vec![settled], false);
                }
                Ok(record)
            }
            Err(mut failure) => {
                if self.phase == Phase::Over {
                    return Err(failure);
                }
                if self.committed().is_some() {
                    // The record is in the journal and could be neither flushed nor cut off: nothing may be taken
                    // back that a recovery would take for committed.
                    self.phase = Phase::Over;
                    let unknown = "; whether it is committed will be known after the next recovery";
                    failure.error.detail.push_str(unknown);
                    return Err(failure);
                }
                match self.take_back() {
                    Ok(done) => {
                        failure.restoration.restored.extend(done.restored);
                        failure.restoration.conflicts.extend(done.conflicts);
                    }
                    Err(e) => {
                        let met = format!("; taking back met: {}; the next recovery tries again", e.detail);
                        failure.error.detail.push_str(&met);
                    }
                }
                Err(failure)
            }
        }
    }

    fn restore(&mut self) -> Result<Restoration, Error> {
        if self.phase == Phase::Over {
            return Err(Error::invalid("this transaction is over"));
        }
        self.take_back()
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        if self.phase == Phase::Open {
            // Whatever fails here, the journal calls the next recovery for.
            let _ = self.take_back();
        }
    }
}
