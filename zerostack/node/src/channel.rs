//! An effect channel whose functions are JavaScript's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use zerostack::contracts::json::from_value;
use zerostack::contracts::{CancelToken, CellId, Epoch, Error, Handle, SessionName};
use zerostack::outbox::{self, ChannelConfig, ChannelFuture, DispatchError, EffectChannel, Probed};

use crate::functions::Functions;

/// Effects on the outside world that cells may ask for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Effects {
    /// The channels by name: functions of the host, or a built-in channel.
    channels: BTreeMap<String, Value>,
    /// How often an effect is tried, or asked about, before it is given up; 5 if absent.
    ceiling: Option<u32>,
    /// How long a channel's answer is waited for; 30,000 if absent.
    timeout_ms: Option<u64>,
    /// How long a dispatcher on another machine that died keeps the others waiting; 30,000 if absent.
    lease_ttl_ms: Option<u64>,
}

/// The functions of a channel, each `true` in its place.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FunctionsOfChannel {
    #[serde(rename = "dispatch")]
    _dispatch: bool,
    #[serde(default)]
    probe: bool,
}

impl Effects {
    /// Gives the kernel's configuration.
    ///
    /// # Errors
    /// `invalid_input` that names the channel.
    pub fn effects(self, functions: &Functions) -> Result<zerostack::Effects, Error> {
        let mut effects = zerostack::Effects::default();
        for (name, given) in self.channels {
            let channel: Result<Arc<dyn EffectChannel>, Error> = if given.get("dispatch").is_some() {
                from_value::<FunctionsOfChannel>(given).map(|own| {
                    Arc::new(Channel {
                        functions: functions.clone(),
                        name: name.clone(),
                        probe: own.probe,
                    }) as _
                })
            } else {
                from_value::<ChannelConfig>(given).and_then(ChannelConfig::channel)
            };
            let channel = channel.map_err(|why| why.with_path(format!("effects.channels.{name}")))?;
            effects.channels.insert(name, channel);
        }
        effects.ceiling = self.ceiling.unwrap_or(effects.ceiling);
        effects.timeout = self.timeout_ms.map_or(effects.timeout, Duration::from_millis);
        effects.lease_ttl = self.lease_ttl_ms.map_or(effects.lease_ttl, Duration::from_millis);
        Ok(effects)
    }
}

struct Channel {
    functions: Functions,
    name: String,
    probe: bool,
}

/// One effect as its channel gets it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EffectCall<'a> {
    /// Name of the effect: never the same for two effects of a workspace.
    handle: &'a Handle,
    /// The channel's name.
    effect: &'a String,
    /// Business identity. A receiver that refuses a repeated key makes the effect happen exactly once.
    key: &'a String,
    /// What the cell gave.
    payload: &'a Value,
    /// Fencing token: a receiver that remembers the greatest and refuses a lesser one is safe from a late dispatcher.
    epoch: Epoch,
    /// How often the channel was called for this effect, this call included.
    attempt: u32,
    /// The session of the cell that asked for it.
    session: &'a SessionName,
    /// The cell that asked for it.
    cell: &'a CellId,
}

/// What `index.js` makes of what a function of the channel gave or threw.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Answer {
    /// It was done: the evidence.
    Sent(Value),
    /// It was not done.
    NotSent(String),
    /// It may have been done.
    Unknown(String),
}

impl Channel {
    async fn ask(&self, function: &str, effect: &outbox::EffectCall) -> Answer {
        let call = EffectCall {
            handle: &effect.handle,
            effect: &effect.effect,
            key: &effect.key,
            payload: &effect.payload,
            epoch: effect.epoch,
            attempt: effect.attempt,
            session: &effect.session,
            cell: &effect.cell,
        };
        let question = json!({ "channel": self.name, "effect": call });
        match self.functions.ask_later(function, question).await {
            Ok(Ok(answer)) => serde_json::from_str(&answer)
                .unwrap_or_else(|_| Answer::Unknown(format!("the channel answered {answer}, which says nothing"))),
            Ok(Err(why)) => Answer::Unknown(why),
            Err(gone) => Answer::Unknown(gone.detail),
        }
    }
}

impl EffectChannel for Channel {
    fn dispatch<'a>(
        &'a self,
        effect: &'a outbox::EffectCall,
        _cancel: &'a CancelToken,
    ) -> ChannelFuture<'a, Result<Value, DispatchError>> {
        Box::pin(async move {
            match self.ask("dispatch", effect).await {
                Answer::Sent(evidence) => Ok(evidence),
                Answer::NotSent(why) => Err(DispatchError::NotSent(why)),
                Answer::Unknown(why) => Err(DispatchError::Unknown(why)),
            }
        })
    }

    fn probe<'a>(
        &'a self,
        effect: &'a outbox::EffectCall,
        _cancel: &'a CancelToken,
    ) -> Option<ChannelFuture<'a, Probed>> {
        if !self.probe {
            return None;
        }
        Some(Box::pin(async move {
            match self.ask("probe", effect).await {
                Answer::Sent(evidence) => Probed::Sent(evidence),
                Answer::NotSent(_) => Probed::NotSent,
                Answer::Unknown(why) => Probed::Unknown(why),
            }
        }))
    }
}
