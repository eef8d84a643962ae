//! Events as files that somebody else can check.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use zero_contracts::{Digest, Error, ErrorKind, SessionName};

use super::digests::identity_of;
use crate::config::Result;
use crate::record::canonical_json;

pub(super) const EVENT: &str = "zerostack.exported-event.v1";
pub(super) const CHAIN: &str = "zerostack.exported-chain.v1";

/// One event with both of its digests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportedEvent {
    /// `zerostack.exported-event.v1`.
    pub schema: String,
    /// The integrity digest.
    pub integrity: Digest,
    /// The identity digest.
    pub identity: Digest,
    /// The event, with every member it has in the store.
    pub event: Value,
}

/// The events of a session, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportedChain {
    /// `zerostack.exported-chain.v1`.
    pub schema: String,
    /// The session.
    pub session: SessionName,
    /// Events that were pruned before the first one; the chain begins at the last of them.
    pub pruned: u64,
    /// The events that are kept.
    pub events: Vec<ExportedEvent>,
}

impl ExportedEvent {
    /// Exports an event from its stored bytes.
    ///
    /// # Errors
    /// `corrupt` if they are not the canonical form of a JSON value.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self> {
        let event: Value = serde_json::from_slice(bytes)
            .map_err(|e| Error::new(ErrorKind::Corrupt, format!("a stored event is not JSON: {e}")))?;
        if canonical_json(&event)? != bytes {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "a stored event is not in its canonical form",
            ));
        }
        Ok(Self {
            schema: EVENT.to_owned(),
            integrity: Digest::of(bytes),
            identity: identity_of(event.clone())?,
            event,
        })
    }
}

impl ExportedChain {
    /// Puts a chain together.
    pub fn new(session: SessionName, pruned: u64, events: Vec<ExportedEvent>) -> Self {
        Self {
            schema: CHAIN.to_owned(),
            session,
            pruned,
            events,
        }
    }
}
