//! What a host says about effects.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use zero_contracts::{Error, Handle, ObjectStore, Result};

use super::{AppendFile, CommandChannel, EffectChannel, FleetStore};

/// Effects that cells may ask for, and where the outbox lies. The default registers no channel.
#[derive(Clone)]
pub struct Effects {
    /// The channels by name; a name has 1 to 64 characters out of `A–Z a–z 0–9 . _ -`, no leading dot.
    pub channels: BTreeMap<String, Arc<dyn EffectChannel>>,
    /// What the hosts of a fleet share; without it SQLite in the workspace's store.
    pub store: Option<Arc<dyn FleetStore>>,
    /// Where the terminal events go besides, for a fleet whose hosts do not share a disk; only with `store`.
    pub objects: Option<Arc<dyn ObjectStore>>,
    /// How often an effect is tried, or asked about, before it is given up. 5 by default.
    pub ceiling: u32,
    /// How long a channel's answer is waited for. 30 s by default.
    pub timeout: Duration,
    /// Time to live of the lease under which a channel is used: how long a dispatcher on another machine that died keeps
    /// the others waiting. 30 s by default.
    pub lease_ttl: Duration,
    /// Whether opening a kernel reconciles; it should, unless the host calls [`crate::ZeroKernel::reconcile`] itself. True by
    /// default.
    pub reconcile_at_opening: bool,
    /// Stands after every step of a dispatch: for fault injection.
    pub gate: Option<Arc<dyn EffectGate>>,
}

impl Default for Effects {
    fn default() -> Self {
        Self {
            channels: BTreeMap::new(),
            store: None,
            objects: None,
            ceiling: 5,
            timeout: Duration::from_secs(30),
            lease_ttl: Duration::from_secs(30),
            reconcile_at_opening: true,
            gate: None,
        }
    }
}

impl Effects {
    /// Registers a channel.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, channel: impl EffectChannel + 'static) -> Self {
        self.channels.insert(name.into(), Arc::new(channel));
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        for name in self.channels.keys() {
            let valid = (1..=64).contains(&name.len())
                && !name.starts_with('.')
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
            if !valid {
                return Err(Error::invalid(format!(
                    "`{name}` is not a channel's name: 1 to 64 characters out of A-Z a-z 0-9 . _ - and no leading dot"
                ))
                .with_path("effects.channels"));
            }
        }
        if self.ceiling == 0 {
            return Err(Error::invalid("an effect must be tried once at least").with_path("effects.ceiling"));
        }
        if self.lease_ttl < Duration::from_millis(10) {
            return Err(Error::invalid("a lease lives for 10 ms at least").with_path("effects.leaseTtlMs"));
        }
        Ok(())
    }
}

/// A built-in channel as a configuration file says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum ChannelConfig {
    /// Appends one JSON line per effect to a file: see [`AppendFile`].
    AppendFile {
        /// The file; made if absent.
        path: PathBuf,
    },
    /// Runs a command per effect: see [`CommandChannel`].
    Command {
        /// Program and arguments.
        argv: Vec<String>,
        /// The command that finds out whether it was done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        probe: Option<Vec<String>>,
        /// Directory to run in; without it the channel's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<PathBuf>,
        /// Variables beside the allow-listed ones of the host.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
        /// Milliseconds it may take; without it as long as a channel's answer is waited for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
}

impl ChannelConfig {
    /// Makes the channel.
    ///
    /// # Errors
    /// `invalid_input`.
    pub fn channel(self) -> Result<Arc<dyn EffectChannel>> {
        Ok(match self {
            Self::AppendFile { path } => Arc::new(AppendFile::new(path)?),
            Self::Command {
                argv,
                probe,
                cwd,
                env,
                timeout_ms,
            } => {
                let mut channel = CommandChannel::new(argv)?;
                channel.cwd = cwd;
                channel.env = env;
                channel.timeout = timeout_ms.map(Duration::from_millis);
                Arc::new(match probe {
                    Some(probe) => channel.with_probe(probe)?,
                    None => channel,
                })
            }
        })
    }
}

/// A step of a dispatch, just done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EffectStep {
    /// The commit record is durable; the outbox does not know of it.
    Durable,
    /// The commits were applied: intents are prepared effects.
    Applied,
    /// The channel's lease was acquired.
    Acquired,
    /// The effect was claimed.
    Claimed,
    /// It was marked as dispatched; the channel was not called yet.
    Marked,
    /// The channel answered; nothing of that is recorded.
    Answered,
    /// The probe answered; nothing of that is recorded.
    Probed,
    /// What came of it is recorded; no event tells it yet.
    Recorded,
    /// The event is in the session's chain; the outbox does not know yet.
    Told,
}

impl EffectStep {
    /// Every step, in order.
    pub const ALL: [Self; 9] = [
        Self::Durable,
        Self::Applied,
        Self::Acquired,
        Self::Claimed,
        Self::Marked,
        Self::Answered,
        Self::Probed,
        Self::Recorded,
        Self::Told,
    ];
}

/// Stands after every step of a dispatch.
pub trait EffectGate: Send + Sync {
    /// Lets the dispatcher go on, or stops it where it is, as its death would: nothing is tidied up.
    ///
    /// # Errors
    /// Any error stops it.
    fn pass(&self, step: EffectStep, effect: Option<&Handle>) -> Result<()>;
}
