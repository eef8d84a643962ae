//! Effects on the outside world, at most once: a transactional outbox.
//!
//! `z.apply({effect, key, payload})` stages an intent. The commit record makes it durable together with files and state;
//! only then, and never by a cell that failed, is the channel called that the host registered under that name.
//!
//! # The promise
//!
//! **At most once, with reconciliation.** An effect is marked as dispatched durably before its channel is called. If the
//! dispatcher dies before it has recorded the answer, the channel's *probe* decides: sent → committed with its evidence;
//! not sent → prepared again, and dispatched again; unknown, or no probe → never sent again, counted, and abandoned at the
//! ceiling. So with an honest probe nothing is sent twice and nothing is lost, *given that the probe's "not sent" is final
//! or the receiver refuses an old epoch or a repeated key*: a dispatcher that was stopped after its mark and before its
//! call, long enough for its lease to lapse, may still call when it wakes up. Without a probe nothing is sent twice either,
//! but what was under way at a crash ends abandoned: listed, its fate unknown.
//!
//! * The *key* is business identity, never time. The same key with the same payload is a duplicate, answered with the first
//!   evidence; with another payload it is `conflict`. A key is unique in its workspace, session or cell, by its `scope`.
//! * The *fence*: a channel is used under a named lease ([`NamedLeases`]), whose epoch only grows. It is verified inside
//!   the claim and again inside the mark; a claim lost to a newer epoch goes back to its owner.
//! * *Reconciliation* runs when a kernel opens and on request ([`ZeroKernel::reconcile`](crate::ZeroKernel::reconcile)).
//!   There is no timer and no thread that waits: what a host that is gone left prepared is done by the next one.
//! * An effect that its channel could not do at the ceiling is *quarantined*: kept, listed, never retried by itself.
//! * How an effect ended is an event of its own in the chain of the session that asked for it.
//!
//! Outbox, leases and replicated events sit behind [`FleetStore`]: SQLite in the workspace's store by default,
//! PostgreSQL (feature `postgres`) where hosts on several machines share them.

mod append_file;
mod channel;
mod command;
mod config;
mod dispatch;
mod drive;
mod host;
mod kernel;
mod lease;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "object-store")]
pub mod shared_objects;
mod sql;
pub mod sqlite;
mod stage;
mod store;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use zero_contracts::files::{CommitRecord, Damage, Durability};
use zero_contracts::{Error, ErrorKind, FileEngine, ObjectStore, Result};

pub use append_file::AppendFile;
pub use channel::{ChannelFuture, DispatchError, EffectCall, EffectChannel, Probed};
pub use command::CommandChannel;
pub use config::{ChannelConfig, EffectGate, EffectStep, Effects};
pub use dispatch::Reconciled;
pub use host::HostIdentity;
pub use lease::{LeaseRequest, NamedLease, NamedLeases};
pub(crate) use stage::{Intents, stage};
pub use store::{
    Count, EffectFilter, FleetStore, HeldLease, LeaseAnswer, LeaseAsk, LeaseEnd, LeaseStatus, ReplicatedCommit,
    ReplicatedEvent, Transition,
};

use crate::cell::lock;

/// Name of the file that holds the workspace's name in what a fleet shares.
const WORKSPACE: &str = "workspace.id";

/// Commits applied in one step: bounds memory and the length of a transaction.
const BATCH: usize = 256;

/// An open store, and the workspace's name in it.
type Opened = (Arc<dyn FleetStore>, Arc<str>);

/// The outbox of one kernel.
pub(crate) struct Outbox {
    pub(crate) config: Effects,
    directory: PathBuf,
    /// None for a store that goes with the kernel.
    durability: Option<Durability>,
    /// Opened at first use.
    opened: Mutex<Option<Opened>>,
}

impl Outbox {
    /// Makes the outbox of a workspace's store directory, without a durability of one that goes with the kernel; nothing is
    /// opened yet.
    pub(crate) fn new(config: Effects, directory: &Path, durability: Option<Durability>) -> Result<Self> {
        config.check()?;
        Ok(Self {
            config,
            directory: directory.to_owned(),
            durability,
            opened: Mutex::default(),
        })
    }

    /// Returns the store and the workspace's name in it.
    pub(crate) fn open(&self) -> Result<Opened> {
        let mut opened = lock(&self.opened);
        if let Some(opened) = &*opened {
            return Ok(opened.clone());
        }
        let workspace: Arc<str> = workspace_name(&self.directory, self.durability.is_some())?.into();
        let store: Arc<dyn FleetStore> = match &self.config.store {
            Some(shared) => Arc::clone(shared),
            None => match self.durability {
                Some(durability) => Arc::new(sqlite::open(&self.directory, durability)?),
                None => Arc::new(sqlite::in_memory()?),
            },
        };
        *opened = Some((Arc::clone(&store), Arc::clone(&workspace)));
        Ok((store, workspace))
    }

    /// Applies the journal's commits that the store has not seen; returns how many.
    ///
    /// # Errors
    /// Those of journal and store.
    pub(crate) fn catch_up(&self, files: &dyn FileEngine, objects: &dyn ObjectStore) -> Result<usize> {
        let (store, workspace) = self.open()?;
        let applied = store.applied(&workspace)?;
        let commits = files.commits_after(applied.unwrap_or(0))?;
        // What was there before the two met is applied in one step, even if it is nothing.
        let batches = match applied {
            Some(_) => commits.chunks(BATCH).collect(),
            None => vec![&commits[..]],
        };
        for batch in batches {
            let replicated: Vec<_> = batch
                .iter()
                .map(|commit| self.replicated(commit, objects))
                .collect::<Result<_>>()?;
            store.apply(&workspace, &replicated)?;
        }
        Ok(commits.len())
    }

    fn replicated(&self, commit: &CommitRecord, objects: &dyn ObjectStore) -> Result<ReplicatedCommit> {
        let seal = &commit.seal;
        let mut body = None;
        if self.config.store.is_some() {
            let event = objects.get(&seal.event)?;
            if let Some(shared) = &self.config.objects {
                shared.put(&event)?;
            }
            body = String::from_utf8(event).ok();
        }
        let read = |digest| {
            // A damaged intent must not stand in the way of all others.
            let intent = objects.get(&digest).map_err(|e| e.to_string());
            (digest, intent.and_then(|bytes| sql::read_intent(&bytes)))
        };
        Ok(ReplicatedCommit {
            sequence: commit.sequence,
            session: seal.session.clone(),
            cell: commit.cell.clone(),
            state: seal.state,
            event: seal.event,
            body,
            intents: seal.intents.iter().copied().map(read).collect(),
        })
    }

    /// Whether events are replicated to a store that others share.
    pub(crate) fn replicates(&self) -> bool {
        self.config.store.is_some()
    }

    pub(crate) fn leases(&self) -> Result<NamedLeases> {
        Ok(NamedLeases(self.open()?.0))
    }

    /// The private directory of a channel.
    fn channel_directory(&self, channel: &str) -> PathBuf {
        self.directory.join("channels").join(channel)
    }
}

/// What is wrong with the outbox of a store's directory; nothing is made or changed.
pub(crate) fn examine(directory: &Path) -> Option<Damage> {
    let named = match directory.join(WORKSPACE).exists() {
        true => workspace_name(directory, false).map(drop),
        false => Ok(()),
    };
    let error = sqlite::examine(directory).and(named).err()?;
    Some(Damage {
        what: "outbox".into(),
        detail: error.detail,
    })
}

/// Reads or makes the name under which a fleet knows the workspace of this store.
fn workspace_name(directory: &Path, flush: bool) -> Result<String> {
    use std::io::Write;
    let path = directory.join(WORKSPACE);
    let fail = |e: std::io::Error| Error::from_io(&e, "the workspace's name in the store");
    if !path.exists() {
        let mut file = tempfile::NamedTempFile::new_in(directory).map_err(fail)?;
        file.write_all(uuid::Uuid::new_v4().simple().to_string().as_bytes())
            .map_err(fail)?;
        if flush {
            file.as_file().sync_all().map_err(fail)?;
        }
        match file.persist_noclobber(&path) {
            Err(e) if e.error.kind() != std::io::ErrorKind::AlreadyExists => return Err(fail(e.error)),
            _ => {}
        }
    }
    let name = std::fs::read_to_string(&path).map_err(fail)?;
    match name.trim() {
        name if name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit()) => Ok(name.to_owned()),
        _ => Err(Error::new(
            ErrorKind::Corrupt,
            "the file workspace.id of the store does not hold 32 hexadecimal digits",
        )),
    }
}
