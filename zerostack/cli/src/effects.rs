//! `zero-kernel effects`: what became of effects on the outside world, and what an operator can do about them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;
use zerostack::contracts::{CancelToken, EffectState, Error, Handle};
use zerostack::outbox::{ChannelConfig, EffectFilter};
use zerostack::{Effects, KernelConfig, ZeroKernel};

use crate::{Workspace, fail, print};

/// Which channels there are, and where the outbox lies.
#[derive(Args)]
pub struct Channels {
    /// A JSON file of built-in channels: {"NAME": {"appendFile": {"path": …}}, "NAME": {"command": {"argv": […], "probe": […]}}}.
    #[arg(long, value_name = "FILE")]
    channels: Option<PathBuf>,
    /// Address of the PostgreSQL server that holds the outbox of a fleet, such as "host=/run/postgresql dbname=fleet".
    #[cfg(feature = "postgres")]
    #[arg(long, value_name = "ADDRESS")]
    outbox: Option<String>,
}

impl Channels {
    /// Registers the channels.
    pub fn apply(&self, config: &mut KernelConfig) -> Result<(), Error> {
        config.effects = self.effects()?;
        Ok(())
    }

    fn effects(&self) -> Result<Effects, Error> {
        let mut effects = Effects::default();
        #[cfg(feature = "postgres")]
        if let Some(address) = &self.outbox {
            effects.store = Some(std::sync::Arc::new(zerostack::outbox::postgres::connect(address)?));
        }
        let Some(file) = &self.channels else { return Ok(effects) };
        let text = std::fs::read_to_string(file).map_err(|e| Error::from_io(&e, file.display()))?;
        let channels: BTreeMap<String, ChannelConfig> =
            zerostack::contracts::json::from_text(&text).map_err(|mut error| {
                error.detail = format!("{}: {}", file.display(), error.detail);
                error
            })?;
        for (name, channel) in channels {
            effects.channels.insert(name, channel.channel()?);
        }
        Ok(effects)
    }
}

/// Lists, reconciles, abandons and retries effects on the outside world.
#[derive(Args)]
pub struct EffectsCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List effects in the order of their commits, and the leases of the outbox.
    List {
        #[command(flatten)]
        workspace: Workspace,
        #[command(flatten)]
        channels: Channels,
        /// Only those in this state: prepared, claimed, dispatched, committed, abandoned, quarantined; repeatable.
        #[arg(long, value_name = "STATE", value_parser = state)]
        state: Vec<EffectState>,
        /// Only those of this channel.
        #[arg(long, value_name = "NAME")]
        effect: Option<String>,
        /// At most so many; 0 for all.
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// Settle what is pending, as far as the given channels can; one that stays unknown is counted, and abandoned at the ceiling.
    Reconcile {
        #[command(flatten)]
        workspace: Workspace,
        #[command(flatten)]
        channels: Channels,
    },
    /// Give an effect up: it is never sent (again).
    Abandon {
        #[command(flatten)]
        workspace: Workspace,
        #[command(flatten)]
        channels: Channels,
        /// The effect, z://effect/….
        handle: Handle,
        /// Why; kept with it.
        #[arg(long, value_name = "TEXT", default_value = "abandoned by the operator")]
        reason: String,
    },
    /// Prepare a quarantined effect again; the next reconciliation tries it once more.
    Retry {
        #[command(flatten)]
        workspace: Workspace,
        #[command(flatten)]
        channels: Channels,
        /// The effect, z://effect/….
        handle: Handle,
    },
}

fn state(word: &str) -> Result<EffectState, String> {
    EffectState::from_word(word)
        .filter(|state| *state != EffectState::Staged)
        .ok_or_else(|| {
            let words: Vec<_> = EffectState::ALL[1..].iter().map(|state| state.as_str()).collect();
            format!("accepted: {}", words.join(", "))
        })
}

fn open(workspace: &Workspace, channels: &Channels) -> Result<ZeroKernel, Error> {
    let mut config = workspace.config()?;
    channels.apply(&mut config)?;
    ZeroKernel::open(config)
}

impl EffectsCommand {
    /// Does it and prints what came of it.
    pub fn run(self) -> ExitCode {
        match self.action.run() {
            Ok(document) => {
                print(&document);
                ExitCode::SUCCESS
            }
            Err(error) => fail(&error),
        }
    }
}

impl Action {
    fn run(self) -> Result<serde_json::Value, Error> {
        match self {
            Self::List {
                workspace,
                mut channels,
                state,
                effect,
                limit,
            } => {
                // A list sends nothing.
                channels.channels = None;
                let kernel = open(&workspace, &channels)?;
                let filter = EffectFilter {
                    states: state,
                    effect,
                    untold: false,
                    limit,
                };
                Ok(json!({ "effects": kernel.effects(&filter)?, "leases": kernel.leases()?.list()? }))
            }
            Self::Reconcile { workspace, channels } => {
                // Opening would reconcile, too, and keep what it did to itself: the channels are used once, and told of.
                let effects = channels.effects()?;
                let mut config = workspace.config()?;
                config.effects = Effects {
                    reconcile_at_opening: false,
                    ..effects
                };
                let kernel = ZeroKernel::open(config)?;
                Ok(json!(kernel.reconcile(&CancelToken::new())?))
            }
            Self::Abandon {
                workspace,
                mut channels,
                handle,
                reason,
            } => {
                channels.channels = None;
                Ok(json!(open(&workspace, &channels)?.abandon_effect(&handle, &reason)?))
            }
            Self::Retry {
                workspace,
                mut channels,
                handle,
            } => {
                channels.channels = None;
                Ok(json!(open(&workspace, &channels)?.retry_effect(&handle)?))
            }
        }
    }
}
