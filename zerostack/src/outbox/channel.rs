//! The border to the outside world: what a host registers so that effects can be done.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use serde_json::Value;
use zero_contracts::{CancelToken, CellId, Epoch, Error, Handle, SessionName};

/// What a channel's methods return: it may wait for anything, on any executor.
pub type ChannelFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One effect as its channel gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectCall {
    /// Name of the effect: never the same for two effects of a workspace.
    pub handle: Handle,
    /// The channel's name.
    pub effect: String,
    /// Business identity. A receiver that refuses a repeated key makes the effect happen exactly once.
    pub key: String,
    /// What the cell gave.
    pub payload: Value,
    /// Fencing token: grows whenever another dispatcher takes the channel over. A receiver that remembers the greatest
    /// and refuses a lesser one is safe from a dispatcher that was stopped and wakes up late.
    pub epoch: Epoch,
    /// How often the channel was called for this effect, this call included.
    pub attempt: u32,
    /// The session of the cell that asked for it.
    pub session: SessionName,
    /// The cell that asked for it.
    pub cell: CellId,
    /// A private directory of the channel in the workspace's store, for what it must remember. It exists.
    pub directory: PathBuf,
}

/// Why an effect was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DispatchError {
    /// It certainly was not done and will not be: it may be tried again.
    NotSent(String),
    /// It may have been done. It is never sent again unless [`EffectChannel::probe`] says that it was not.
    Unknown(String),
}

/// What a probe found.
#[derive(Clone, Debug, PartialEq)]
pub enum Probed {
    /// It was done; this is the evidence.
    Sent(Value),
    /// It was not done and, whatever happens to an earlier call, will not be.
    NotSent,
    /// Nobody can tell now.
    Unknown(String),
}

/// Does the effects of one name.
///
/// Each effect is claimed, marked as dispatched durably, and only then given to [`dispatch`](Self::dispatch). A dispatcher
/// that dies between that mark and the record of the answer leaves an effect of unknown fate; then
/// [`probe`](Self::probe) decides. The promise is: *at most once, with reconciliation, given a probe whose "not sent" is
/// final, or a receiver that refuses an old epoch or a repeated key.*
pub trait EffectChannel: Send + Sync {
    /// Refuses a payload while its cell still runs: what this accepts, `dispatch` should be able to do.
    ///
    /// # Errors
    /// `invalid_input` or `denied`; the cell gets it.
    fn check(&self, key: &str, payload: &Value) -> Result<(), Error> {
        let _ = (key, payload);
        Ok(())
    }

    /// Does the effect and returns evidence of it: any JSON value. Should heed `cancel`, which tells that the dispatcher
    /// lost its claim; the answer is waited for all the same, up to the configured time.
    fn dispatch<'a>(
        &'a self,
        effect: &'a EffectCall,
        cancel: &'a CancelToken,
    ) -> ChannelFuture<'a, Result<Value, DispatchError>>;

    /// Finds out whether an effect that was given to `dispatch` was done. None if the channel cannot tell: what is unknown
    /// then stays so, and is abandoned at the ceiling.
    fn probe<'a>(&'a self, effect: &'a EffectCall, cancel: &'a CancelToken) -> Option<ChannelFuture<'a, Probed>> {
        let _ = (effect, cancel);
        None
    }
}
