//! Effects on the outside world: what is asked for, and what came of it.
//!
//! A cell stages an *intent*; the commit record names it by digest; only then is its channel called. What became of it is
//! an [`EffectRecord`]: read through the effect's handle, listed for operators, and part of events.

use serde::{Deserialize, Serialize};

use crate::apply::{EffectRequest, EffectScope};
use crate::json::present;
use crate::{CellId, Digest, Epoch, Handle, Hasher, JsonValue, SessionName};

/// Version of the intent's schema.
pub const INTENT_SCHEMA: &str = "zerostack.intent.v1";

/// Most bytes of an effect's key.
pub const EFFECT_KEY_BYTES: usize = 512;

/// Most bytes of an effect's payload as canonical JSON.
pub const EFFECT_PAYLOAD_BYTES: usize = 256 * 1024;

/// Where an effect stands.
///
/// ```text
/// staged → prepared → claimed → dispatched → committed
///             ↑  ↑________|         |  |____→ abandoned    unknown too often
///             |_____________________|  |____→ quarantined  not sent too often
///                    not sent
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum EffectState {
    /// By a cell that is not committed yet.
    Staged,
    /// Committed with its cell; its channel was not called.
    Prepared,
    /// Somebody is about to call the channel.
    Claimed,
    /// The channel was, or is about to be, called; what came of it is not known yet.
    Dispatched,
    /// The channel did it; there is evidence.
    Committed,
    /// Given up: whether it was done is unknown, and it is never sent again.
    Abandoned,
    /// Given up: its channel failed to do it too often. Kept and listed, never retried by itself.
    Quarantined,
}

impl EffectState {
    /// Every state, in the order of an effect's life.
    pub const ALL: [Self; 7] = [
        Self::Staged,
        Self::Prepared,
        Self::Claimed,
        Self::Dispatched,
        Self::Committed,
        Self::Abandoned,
        Self::Quarantined,
    ];

    /// Returns the word used in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::Prepared => "prepared",
            Self::Claimed => "claimed",
            Self::Dispatched => "dispatched",
            Self::Committed => "committed",
            Self::Abandoned => "abandoned",
            Self::Quarantined => "quarantined",
        }
    }

    /// Reads the word used in JSON.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Tells whether nothing more happens by itself.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Committed | Self::Abandoned | Self::Quarantined)
    }
}

/// What a commit record names: an effect as its cell asked for it. Kept as canonical JSON (RFC 8785).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct EffectIntent {
    /// [`INTENT_SCHEMA`].
    pub schema: String,
    /// The channel.
    pub effect: String,
    /// Business identity.
    pub key: String,
    /// Where the key is unique.
    pub scope: EffectScope,
    /// What the channel gets.
    pub payload: JsonValue,
    /// The session of the cell.
    pub session: SessionName,
    /// The cell.
    pub cell: CellId,
}

impl EffectIntent {
    /// Makes the intent of a request.
    pub fn new(request: EffectRequest, session: SessionName, cell: CellId) -> Self {
        Self {
            schema: INTENT_SCHEMA.to_owned(),
            effect: request.effect,
            key: request.key,
            scope: request.scope,
            payload: request.payload,
            session,
            cell,
        }
    }

    /// Returns the effect's name: the digest of its channel, its scope and its key, each after its length. Two intents of
    /// one name are one effect.
    pub fn handle(&self) -> Handle {
        let (scope, within) = match self.scope {
            EffectScope::Workspace => ("workspace", ""),
            EffectScope::Session => ("session", self.session.as_str()),
            EffectScope::Cell => ("cell", self.cell.as_str()),
        };
        let mut hasher = Hasher::new();
        for part in [INTENT_SCHEMA, &self.effect, scope, within, &self.key] {
            hasher
                .update(&(part.len() as u64).to_le_bytes())
                .update(part.as_bytes());
        }
        Handle::effect(hasher.finish())
    }
}

/// The word `effect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum EffectTag {
    /// Always this.
    #[default]
    Effect,
}

/// An effect and what became of it so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct EffectRecord {
    /// The word `effect`.
    pub kind: EffectTag,
    /// Its name.
    pub handle: Handle,
    /// The channel.
    pub effect: String,
    /// Business identity.
    pub key: String,
    /// Where the key is unique.
    pub scope: EffectScope,
    /// The session of the cell that asked for it.
    pub session: SessionName,
    /// The cell that asked for it.
    pub cell: CellId,
    /// The intent, an object of the store: the payload is there, too.
    pub intent: Digest,
    /// What the channel gets; absent in events.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub payload: Option<JsonValue>,
    /// Where it stands.
    pub state: EffectState,
    /// How often its channel was called.
    pub attempts: u32,
    /// How often nobody could tell whether it was done.
    pub unknown: u32,
    /// Fencing token of the last claim; 0 before the first.
    pub epoch: Epoch,
    /// What the channel answered.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub evidence: Option<JsonValue>,
    /// Why it is not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The event that records how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Handle>,
}

impl EffectRecord {
    /// Makes the record of an intent that is staged or prepared.
    pub fn new(intent: &EffectIntent, digest: Digest, state: EffectState) -> Self {
        Self {
            kind: EffectTag::Effect,
            handle: intent.handle(),
            effect: intent.effect.clone(),
            key: intent.key.clone(),
            scope: intent.scope,
            session: intent.session.clone(),
            cell: intent.cell.clone(),
            intent: digest,
            payload: Some(intent.payload.clone()),
            state,
            attempts: 0,
            unknown: 0,
            epoch: Epoch(0),
            evidence: None,
            detail: None,
            event: None,
        }
    }

    /// Returns the record as events carry it: its payload is in the intent.
    #[must_use]
    pub fn without_payload(mut self) -> Self {
        self.payload = None;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(effect: &str, key: &str, scope: EffectScope, session: &str, cell: &str) -> EffectIntent {
        let request = EffectRequest {
            effect: effect.into(),
            key: key.into(),
            payload: JsonValue::default(),
            scope,
        };
        EffectIntent::new(request, SessionName::new(session).unwrap(), CellId::new(cell).unwrap())
    }

    #[test]
    fn a_key_is_unique_within_its_scope_alone() {
        use EffectScope::{Cell, Session, Workspace};
        let name = |effect, key, scope, session, cell| intent(effect, key, scope, session, cell).handle();
        let first = name("mail", "k", Workspace, "s", "c");
        assert_eq!(first, name("mail", "k", Workspace, "t", "d"));
        assert_ne!(first, name("mail", "l", Workspace, "s", "c"));
        assert_ne!(first, name("mai", "lk", Workspace, "s", "c"));
        assert_ne!(first, name("mail", "k", Session, "s", "c"));
        let session = name("mail", "k", Session, "s", "c");
        assert_eq!(session, name("mail", "k", Session, "s", "d"));
        assert_ne!(session, name("mail", "k", Session, "t", "c"));
        let cell = name("mail", "k", Cell, "s", "c");
        assert_ne!(cell, name("mail", "k", Cell, "s", "d"));
        assert_ne!(cell, session);
    }

    #[test]
    fn words_of_states_are_those_of_json() {
        for state in EffectState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
            assert_eq!(EffectState::from_word(state.as_str()), Some(state));
        }
    }
}
