//! Calling channels: what is committed is done, and what a dead dispatcher left is found out.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use zero_contracts::response::{Outcome, Phase, ResponseError};
use zero_contracts::{
    CancelToken, CellId, Digest, EffectRecord, EffectState, Error, ErrorKind, Handle, JsonValue, Result,
    ZeroKernelEvent,
};

use super::channel::{DispatchError, EffectCall, EffectChannel, Probed};
use super::config::EffectStep;
use super::drive::drive;
use super::lease::{LeaseRequest, NamedLease, NamedLeases};
use super::store::{Count, EffectFilter, FleetStore, Transition};
use crate::kernel::Kernel;
use crate::record::{self, canonical_json, now_ms};
use crate::sessions::Head;

/// Evidence larger than this goes to the object store, and its handle stands in its place.
const EVIDENCE_BYTES: usize = 64 * 1024;

/// How long the event of an effect's end waits for the session's head.
const HEAD_WAIT: Duration = Duration::from_secs(10);

/// What a reconciliation did and what it left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reconciled {
    /// Done now, or found to have been done.
    pub committed: Vec<Handle>,
    /// Certainly not done; tried again next time.
    pub not_sent: Vec<Handle>,
    /// Nobody can tell yet; asked again next time, never sent again.
    pub unknown: Vec<Handle>,
    /// Given up: nobody could tell at the ceiling.
    pub abandoned: Vec<Handle>,
    /// Given up: not done at the ceiling.
    pub quarantined: Vec<Handle>,
    /// Channels that another dispatcher uses now; it, or the next reconciliation, does what is pending.
    pub busy: Vec<String>,
    /// Channels with something pending that this host did not register.
    pub unregistered: Vec<String>,
}

/// Why a dispatcher looks at a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A cell has committed intents.
    Dispatch,
    /// Everything pending is to be settled, as far as it can be.
    Reconcile,
}

pub(super) struct Dispatcher<'a> {
    kernel: &'a Kernel,
    store: Arc<dyn FleetStore>,
    workspace: Arc<str>,
    pub(super) report: Reconciled,
}

/// A channel in use.
struct Use<'a> {
    name: &'a str,
    channel: &'a dyn EffectChannel,
    lease: NamedLease,
}

/// What came of a call.
enum Came {
    Done(serde_json::Value),
    NotSent(String),
    Unknown(String),
}

impl<'a> Dispatcher<'a> {
    pub(super) fn new(kernel: &'a Kernel) -> Result<Self> {
        let (store, workspace) = kernel.outbox.open()?;
        Ok(Self {
            kernel,
            store,
            workspace,
            report: Reconciled::default(),
        })
    }

    pub(super) fn gate(&self, step: EffectStep, effect: Option<&Handle>) -> Result<()> {
        match &self.kernel.outbox.config.gate {
            Some(gate) => gate.pass(step, effect),
            None => Ok(()),
        }
    }

    /// Makes prepared effects of what is committed.
    pub(super) fn apply(&self) -> Result<()> {
        match self
            .kernel
            .outbox
            .catch_up(&*self.kernel.files, &*self.kernel.objects)?
        {
            0 => Ok(()),
            _ => self.gate(EffectStep::Applied, None),
        }
    }

    fn list(&self, states: &[EffectState], effect: Option<&str>) -> Result<Vec<EffectRecord>> {
        self.store.effects(
            &self.workspace,
            &EffectFilter {
                states: states.to_vec(),
                effect: effect.map(str::to_owned),
                untold: true,
                limit: 0,
            },
        )
    }

    /// Settles what can be settled in every channel; waits for other dispatchers at most `wait` each.
    pub(super) fn reconcile(&mut self, wait: Duration, token: &CancelToken) -> Result<()> {
        self.apply()?;
        let mut names: Vec<String> = Vec::new();
        for record in self.list(&[], None)? {
            if record.state.is_over() {
                self.tell(&record.handle)?;
            } else if !names.contains(&record.effect) {
                names.push(record.effect);
            }
        }
        for name in names {
            self.channel(&name, Purpose::Reconcile, wait, token)?;
        }
        Ok(())
    }

    /// Does what is pending in one channel.
    pub(super) fn channel(&mut self, name: &str, purpose: Purpose, wait: Duration, token: &CancelToken) -> Result<()> {
        let Some(channel) = self.kernel.outbox.config.channels.get(name) else {
            self.report.unregistered.push(name.to_owned());
            return Ok(());
        };
        let directory = self.kernel.outbox.channel_directory(name);
        std::fs::create_dir_all(&directory).map_err(|e| Error::from_io(&e, "making a channel's directory"))?;
        let request = LeaseRequest {
            name: format!("effects/{}/{name}", self.workspace),
            ttl: self.kernel.outbox.config.lease_ttl,
            wait,
            // Effects have ceilings of their own: a channel is not lost because hosts died.
            ceiling: 0,
        };
        let lease = match NamedLeases(Arc::clone(&self.store)).acquire(&request, token) {
            Ok(lease) => lease,
            Err(e) if e.kind == ErrorKind::Busy => {
                self.report.busy.push(name.to_owned());
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        let mut used = Use {
            name,
            channel: &**channel,
            lease,
        };
        match self.work(&mut used, purpose, token) {
            Ok(()) => used.lease.release(),
            // As the dispatcher's death would leave it.
            Err(e) if self.kernel.outbox.config.gate.is_some() => {
                used.lease.desert();
                Err(e)
            }
            Err(e) => Err(e),
        }
    }

    fn work(&mut self, used: &mut Use<'_>, purpose: Purpose, token: &CancelToken) -> Result<()> {
        self.gate(EffectStep::Acquired, None)?;
        let epoch = used.lease.epoch();
        for record in self.list(&[EffectState::Claimed], Some(used.name))? {
            // Its claimer has lost the channel and never marked it: it was not sent.
            if record.epoch < epoch {
                self.change(&record, EffectState::Claimed, EffectState::Prepared)?;
            }
        }
        if purpose == Purpose::Reconcile {
            for record in self.list(&[EffectState::Dispatched], Some(used.name))? {
                token.check()?;
                used.lease.keep()?;
                if record.epoch < epoch {
                    let came = self.probe(used, &record, "its dispatcher died before it recorded the answer")?;
                    self.settle(&record, came)?;
                }
            }
        }
        let mut tried = HashSet::new();
        loop {
            token.check()?;
            used.lease.keep()?;
            let prepared = self.list(&[EffectState::Prepared], Some(used.name))?;
            let next: Vec<_> = prepared
                .into_iter()
                .filter(|record| tried.insert(record.handle))
                .collect();
            if next.is_empty() {
                return Ok(());
            }
            for record in next {
                token.check()?;
                used.lease.keep()?;
                self.dispatch(used, record)?;
            }
        }
    }

    /// Claims, marks, calls, records.
    fn dispatch(&mut self, used: &mut Use<'_>, mut record: EffectRecord) -> Result<()> {
        let epoch = used.lease.epoch();
        let before = self.transition(&record, EffectState::Prepared, EffectState::Claimed);
        let claimed = self.store.transition(&Transition {
            claimed: None,
            fence: Some(used.lease.held()),
            claim: Some(epoch),
            ..before
        })?;
        if !claimed {
            // Another changed it, or the lease is gone: `keep` tells.
            return used.lease.renew();
        }
        record.epoch = epoch;
        self.gate(EffectStep::Claimed, Some(&record.handle))?;
        let marked = self.store.transition(&Transition {
            fence: Some(used.lease.held()),
            count: Count::Attempt,
            ..self.transition(&record, EffectState::Claimed, EffectState::Dispatched)
        })?;
        if !marked {
            // The fence was lost between claim and send: nothing is sent, and the claim returns to whoever has it now.
            self.change(&record, EffectState::Claimed, EffectState::Prepared)?;
            return used.lease.renew();
        }
        record.attempts += 1;
        self.gate(EffectStep::Marked, Some(&record.handle))?;
        let call = self.call(&record);
        let cancel = used.lease.token().clone();
        let answer = self.wait(used, used.channel.dispatch(&call, &cancel))?;
        self.gate(EffectStep::Answered, Some(&record.handle))?;
        let came = match answer {
            Some(Ok(evidence)) => Came::Done(evidence),
            Some(Err(DispatchError::NotSent(why))) => Came::NotSent(why),
            Some(Err(DispatchError::Unknown(why))) => self.probe(used, &record, &why)?,
            None => {
                let limit = self.kernel.outbox.config.timeout;
                self.probe(used, &record, &format!("the channel did not answer within {limit:?}"))?
            }
        };
        self.settle(&record, came)
    }

    fn call(&self, record: &EffectRecord) -> EffectCall {
        EffectCall {
            handle: record.handle,
            effect: record.effect.clone(),
            key: record.key.clone(),
            payload: record.payload.clone().unwrap_or_default().0,
            epoch: record.epoch,
            attempt: record.attempts,
            session: record.session.clone(),
            cell: record.cell.clone(),
            directory: self.kernel.outbox.channel_directory(&record.effect),
        }
    }

    /// Waits for a channel, renewing its lease meanwhile; a lost one cancels the token that the channel has.
    fn wait<T: Send>(&self, used: &mut Use<'_>, future: super::ChannelFuture<'_, T>) -> Result<Option<T>> {
        let lease = &mut used.lease;
        let mut renew = || drop(lease.keep());
        let (limit, every) = (
            self.kernel.outbox.config.timeout,
            self.kernel.outbox.config.lease_ttl / 4,
        );
        drive(future, limit, every, &mut renew).map_err(|e| Error::from_io(&e, "starting the thread of a channel"))
    }

    /// Finds out what became of an effect of unknown fate.
    fn probe(&self, used: &mut Use<'_>, record: &EffectRecord, why: &str) -> Result<Came> {
        let call = self.call(record);
        let cancel = used.lease.token().clone();
        let Some(probe) = used.channel.probe(&call, &cancel) else {
            return Ok(Came::Unknown(format!("{why}; the channel has no probe")));
        };
        let probed = self.wait(used, probe)?;
        self.gate(EffectStep::Probed, Some(&record.handle))?;
        Ok(match probed {
            Some(Probed::Sent(evidence)) => Came::Done(evidence),
            Some(Probed::NotSent) => Came::NotSent(format!("{why}; the probe says that it was not done")),
            Some(Probed::Unknown(unknown)) => Came::Unknown(format!("{why}; {unknown}")),
            None => Came::Unknown(format!("{why}; the probe did not answer")),
        })
    }

    /// Records what came of a dispatched effect.
    fn settle(&mut self, record: &EffectRecord, came: Came) -> Result<()> {
        let ceiling = self.kernel.outbox.config.ceiling;
        let (to, count, evidence, detail) = match came {
            Came::Done(evidence) => (EffectState::Committed, Count::Nothing, Some(self.fit(evidence)?), None),
            Came::NotSent(why) if record.attempts >= ceiling => {
                (EffectState::Quarantined, Count::Nothing, None, Some(why))
            }
            Came::NotSent(why) => (EffectState::Prepared, Count::Nothing, None, Some(why)),
            Came::Unknown(why) if record.unknown + 1 >= ceiling => {
                (EffectState::Abandoned, Count::Unknown, None, Some(why))
            }
            Came::Unknown(why) => (EffectState::Dispatched, Count::Unknown, None, Some(why)),
        };
        let recorded = self.store.transition(&Transition {
            count,
            evidence: evidence.as_ref(),
            detail: detail.as_deref(),
            ..self.transition(record, EffectState::Dispatched, to)
        })?;
        if !recorded {
            // Who took the channel over has found out by itself.
            tracing::warn!(effect = %record.handle, ?to, "what became of an effect was recorded by another");
            return Ok(());
        }
        let list = match to {
            EffectState::Committed => &mut self.report.committed,
            EffectState::Prepared => &mut self.report.not_sent,
            EffectState::Abandoned => &mut self.report.abandoned,
            EffectState::Quarantined => &mut self.report.quarantined,
            _ => &mut self.report.unknown,
        };
        list.push(record.handle);
        self.gate(EffectStep::Recorded, Some(&record.handle))?;
        if to.is_over() {
            self.tell(&record.handle)
        } else {
            Ok(())
        }
    }

    fn fit(&self, evidence: serde_json::Value) -> Result<JsonValue> {
        let bytes = canonical_json(&evidence)?;
        if bytes.len() <= EVIDENCE_BYTES {
            return Ok(JsonValue(evidence));
        }
        let object = Handle::blob(self.kernel.objects.put(&bytes)?);
        Ok(JsonValue(
            serde_json::json!({ "bytes": bytes.len(), "evidence": object }),
        ))
    }

    /// Appends the event of an effect's end to the session that asked for it, once.
    pub(super) fn tell(&self, handle: &Handle) -> Result<()> {
        let kernel = self.kernel;
        let Some(record) = self.store.effect(&self.workspace, &handle.digest)? else {
            return Ok(());
        };
        if record.event.is_some() || !record.state.is_over() {
            return Ok(());
        }
        // The same for whoever tells it, so that a second telling is seen; different for a second end after a retry.
        let name = format!(
            "effect-{}-{}-{}",
            &handle.digest.to_hex()[..32],
            record.attempts,
            record.state.as_str()
        );
        let name = CellId::new(name)?;
        let session = record.session.clone();
        let _head = kernel.sessions.lock(&session, &CancelToken::with_timeout(HEAD_WAIT))?;
        kernel.sessions.catch_up(&*kernel.files)?;
        let event = match kernel.sessions.event_of(&name)? {
            Some(told) => told,
            None => {
                let head = kernel.sessions.head(&session)?;
                let mut event = end_event(&name, record, head);
                let digest = record::store_event(kernel, &mut event)?;
                let next = Head {
                    state: head.state,
                    event: Some(digest),
                };
                kernel.append(&session, &name, next, false)?;
                kernel.subscribers.publish(Handle::event(digest), &event);
                digest
            }
        };
        self.gate(EffectStep::Told, Some(handle))?;
        self.store.note_event(&self.workspace, &handle.digest, Some(&event))
    }

    /// A change of an effect as it is known, by its claimer.
    fn transition<'t>(&'t self, record: &EffectRecord, from: EffectState, to: EffectState) -> Transition<'t> {
        Transition {
            workspace: &self.workspace,
            effect: record.handle.digest,
            from,
            claimed: Some(record.epoch),
            fence: None,
            to,
            claim: None,
            count: Count::Nothing,
            evidence: None,
            detail: None,
        }
    }

    fn change(&self, record: &EffectRecord, from: EffectState, to: EffectState) -> Result<bool> {
        self.store.transition(&self.transition(record, from, to))
    }

    /// Gives an effect up by hand.
    pub(super) fn abandon(&mut self, digest: &Digest, why: &str) -> Result<EffectRecord> {
        let record = self.known(digest)?;
        let given_up = match record.state {
            EffectState::Prepared | EffectState::Dispatched | EffectState::Quarantined => {
                self.store.transition(&Transition {
                    detail: Some(why),
                    ..self.transition(&record, record.state, EffectState::Abandoned)
                })?
            }
            _ => false,
        };
        self.by_hand(
            &record,
            given_up,
            "only what is prepared, dispatched or quarantined can be abandoned",
        )
    }

    /// Prepares a quarantined effect again, by hand. Its attempts go on counting: it is tried once more.
    pub(super) fn retry(&mut self, digest: &Digest) -> Result<EffectRecord> {
        let record = self.known(digest)?;
        let retried = record.state == EffectState::Quarantined
            && record.effect != "unreadable"
            && self.change(&record, EffectState::Quarantined, EffectState::Prepared)?;
        self.by_hand(&record, retried, "only what is quarantined can be tried again")
    }

    fn known(&self, digest: &Digest) -> Result<EffectRecord> {
        self.store.effect(&self.workspace, digest)?.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("no effect {} is known", Handle::effect(*digest)),
            )
        })
    }

    fn by_hand(&self, record: &EffectRecord, done: bool, rule: &str) -> Result<EffectRecord> {
        if !done {
            let now = self.known(&record.handle.digest)?;
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("{} is {}: {rule}", record.handle, now.state.as_str()),
            ));
        }
        // Its next end is another event.
        self.store.note_event(&self.workspace, &record.handle.digest, None)?;
        self.tell(&record.handle)?;
        self.known(&record.handle.digest)
    }
}

/// The event that records how an effect ended.
fn end_event(name: &CellId, record: EffectRecord, head: Head) -> ZeroKernelEvent {
    let error = (record.state != EffectState::Committed).then(|| {
        let why = record.detail.as_deref().unwrap_or("no reason is known");
        let error = Error::new(
            ErrorKind::Io,
            format!(
                "the effect `{}` of `{}` is {}: {why}",
                record.key,
                record.effect,
                record.state.as_str()
            ),
        );
        ResponseError::new(error, Phase::Settling)
    });
    let mut event = ZeroKernelEvent::blank(record.session.clone(), name.clone(), now_ms());
    event.outcome = if error.is_none() {
        Outcome::Completed
    } else {
        Outcome::Failed
    };
    event.error = error;
    (event.state.before, event.state.after) = (head.state, head.state);
    event.effects = vec![record.without_payload()];
    event.previous = head.event;
    event
}
