//! The border to what a fleet shares: the outbox, named leases and replicated events.
//!
//! SQLite implements it in the workspace's store ([`super::sqlite`]), PostgreSQL for hosts on several machines
//! ([`super::postgres`]). Files and state roots are no part of it: they stay beside their journal, fenced by the workspace
//! lease.

use std::time::Duration;

use serde::Serialize;
use zero_contracts::{CellId, Digest, EffectIntent, EffectRecord, EffectState, Epoch, JsonValue, Result, SessionName};

use super::host::HostIdentity;

/// One commit of a workspace's journal, as a fleet keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicatedCommit {
    /// Its place in the journal.
    pub sequence: u64,
    /// The session.
    pub session: SessionName,
    /// The cell.
    pub cell: CellId,
    /// The session's state root after it.
    pub state: Option<Digest>,
    /// Its terminal event.
    pub event: Digest,
    /// The event itself, canonical JSON; absent where the store lies beside the objects.
    pub body: Option<String>,
    /// Its intents with their digests; what could not be read is an error's text.
    pub intents: Vec<(Digest, std::result::Result<EffectIntent, String>)>,
}

/// One event as a fleet keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicatedEvent {
    /// Place in the journal of its workspace.
    pub sequence: u64,
    /// The session.
    pub session: String,
    /// The cell.
    pub cell: String,
    /// Its digest.
    pub event: Digest,
    /// The event itself, canonical JSON, where it was replicated.
    pub body: Option<String>,
}

/// Which effects are listed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EffectFilter {
    /// In these states; in any if empty.
    pub states: Vec<EffectState>,
    /// Of this channel.
    pub effect: Option<String>,
    /// Only those whose end no event records: everything that is still to do something about, however long the history.
    pub untold: bool,
    /// At most so many; all if 0.
    pub limit: u32,
}

/// What a transition counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Nothing.
    Nothing,
    /// One more call of the channel.
    Attempt,
    /// One more time that nobody could tell.
    Unknown,
}

/// A compare-and-set of an effect: it happens if everything that is said of "before" holds, in one step.
#[derive(Clone, Debug)]
pub struct Transition<'a> {
    /// The workspace.
    pub workspace: &'a str,
    /// The effect's name.
    pub effect: Digest,
    /// The state before.
    pub from: EffectState,
    /// The claim's epoch before; any if none.
    pub claimed: Option<Epoch>,
    /// A lease that must be held and not lapsed: the fence.
    pub fence: Option<&'a HeldLease>,
    /// The state after.
    pub to: EffectState,
    /// The claim's epoch after; unchanged if none.
    pub claim: Option<Epoch>,
    /// What is counted.
    pub count: Count,
    /// The evidence after; unchanged if none.
    pub evidence: Option<&'a JsonValue>,
    /// Why it is not done, after.
    pub detail: Option<&'a str>,
}

/// What is wanted of [`FleetStore::acquire_lease`].
#[derive(Clone, Debug)]
pub struct LeaseAsk<'a> {
    /// The resource.
    pub name: &'a str,
    /// A name of this acquisition that no other has.
    pub owner: &'a str,
    /// The process.
    pub host: &'a HostIdentity,
    /// Time to live.
    pub ttl: Duration,
    /// Failed holders in a row after which the resource is quarantined; never if 0.
    pub ceiling: u32,
    /// Whether this is the first try of a wait: contention is counted once a wait.
    pub first: bool,
}

/// A lease as its holder knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLease {
    /// The resource.
    pub name: String,
    /// The acquisition.
    pub owner: String,
    /// Its fencing token.
    pub epoch: Epoch,
}

/// What an attempt to acquire came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// It is the caller's.
    Granted(Epoch),
    /// Somebody has it.
    Busy(Option<HostIdentity>),
    /// Its holders failed too often in a row; a person must look.
    Quarantined,
}

/// How a holder ends its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// The work is done: failures before it are forgotten.
    Released,
    /// The work failed: counted, and at the ceiling the resource is quarantined.
    Failed {
        /// As in [`LeaseAsk::ceiling`].
        ceiling: u32,
    },
}

/// A lease as anybody sees it, with the counters of its resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseStatus {
    /// The resource.
    pub name: String,
    /// Fencing token of the last acquisition.
    pub epoch: Epoch,
    /// The process that holds it; none if it is free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<HostIdentity>,
    /// Whether the holder's time is up.
    pub lapsed: bool,
    /// Whether nobody gets it before a person lifts the quarantine.
    pub quarantined: bool,
    /// Holders in a row that failed, died or let it lapse.
    pub failures: u64,
    /// Times it was granted.
    pub acquired: u64,
    /// Waits that met another holder.
    pub contended: u64,
    /// Times it was taken from a holder whose time was up.
    pub reclaimed_expired: u64,
    /// Times it was taken from a holder that was dead.
    pub reclaimed_dead: u64,
    /// Renewals that came too late.
    pub lost: u64,
}

/// What a fleet shares. All methods block; all are safe to call from several threads and processes.
pub trait FleetStore: Send + Sync {
    /// Journal sequence up to which a workspace's commits are applied; none if this store never met the workspace.
    ///
    /// # Errors
    /// `io`, `busy`, `corrupt`.
    fn applied(&self, workspace: &str) -> Result<Option<u64>>;

    /// Applies commits: their events are kept, their intents become prepared effects. Idempotent by workspace and
    /// sequence; an effect whose name is there already stays as it is. With the first call the store has met the workspace.
    ///
    /// A store meets a workspace before the first effect is asked for in it. What was committed before is a matter of
    /// another store, which is lost or no longer used: whether its effects were done is not known, so they become dispatched
    /// ones, which only a probe can have sent again.
    ///
    /// # Errors
    /// `io`, `busy`, `corrupt`. Nothing is applied then.
    fn apply(&self, workspace: &str, commits: &[ReplicatedCommit]) -> Result<()>;

    /// Returns replicated events after a sequence, oldest first.
    ///
    /// # Errors
    /// `io`, `busy`, `corrupt`.
    fn events(&self, workspace: &str, after: u64, limit: u32) -> Result<Vec<ReplicatedEvent>>;

    /// Returns one effect.
    ///
    /// # Errors
    /// `io`, `busy`, `corrupt`.
    fn effect(&self, workspace: &str, effect: &Digest) -> Result<Option<EffectRecord>>;

    /// Lists effects in the order of their commits.
    ///
    /// # Errors
    /// `io`, `busy`, `corrupt`.
    fn effects(&self, workspace: &str, filter: &EffectFilter) -> Result<Vec<EffectRecord>>;

    /// Changes an effect if it is as said; tells whether it was.
    ///
    /// # Errors
    /// `io`, `busy`.
    fn transition(&self, transition: &Transition<'_>) -> Result<bool>;

    /// Notes the event that records an effect's end.
    ///
    /// # Errors
    /// `io`, `busy`.
    fn note_event(&self, workspace: &str, effect: &Digest, event: Option<&Digest>) -> Result<()>;

    /// Tries to get a lease: a free one, a lapsed one, or one whose holder is dead.
    ///
    /// # Errors
    /// `io`, `busy` (the database itself).
    fn acquire_lease(&self, ask: &LeaseAsk<'_>) -> Result<LeaseAnswer>;

    /// Renews a lease that is still held and has not lapsed; tells whether it was. A lapsed one is never revived.
    ///
    /// # Errors
    /// `io`, `busy`.
    fn renew_lease(&self, held: &HeldLease, ttl: Duration) -> Result<bool>;

    /// Ends a lease; tells whether it was still held.
    ///
    /// # Errors
    /// `io`, `busy`.
    fn end_lease(&self, held: &HeldLease, end: LeaseEnd) -> Result<bool>;

    /// Lists every lease, by name.
    ///
    /// # Errors
    /// `io`, `busy`, `corrupt`.
    fn leases(&self) -> Result<Vec<LeaseStatus>>;

    /// Lifts the quarantine of a resource; tells whether there was one.
    ///
    /// # Errors
    /// `io`, `busy`.
    fn lift_quarantine(&self, name: &str) -> Result<bool>;
}
