//! The terminal event of a cell: the durable record behind `z://event/…`.

use serde::{Deserialize, Serialize};

use crate::edit::EditReceipt;
use crate::response::{CaptureTier, Disposition, Outcome, PathConflict, ResponseError, StateChange};
use crate::run::{Cleanup, EndReason, Termination};
use crate::{CellId, Digest, EffectRecord, Handle, ResourceLedger, SessionName};

/// Version of the event's schema.
pub const EVENT_SCHEMA: &str = "zerostack.event.v1";

/// What one cell did, as it is kept: canonical JSON (RFC 8785), chained to the session's previous event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct ZeroKernelEvent {
    /// [`EVENT_SCHEMA`].
    pub schema: String,
    /// The session.
    pub session: SessionName,
    /// The cell.
    pub cell: CellId,
    /// Milliseconds since 1970 at which it was recorded.
    pub at_ms: u64,
    /// Digest of the cell's source; absent where the host died and only the journal knew of the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Digest>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ResponseError>,
    /// What became of its effects.
    pub disposition: Disposition,
    /// The session's state root.
    pub state: StateChange,
    /// The paths it changed.
    pub receipts: Vec<EditReceipt>,
    /// The commands it ran.
    pub processes: Vec<ProcessVerdict>,
    /// Absolute paths outside the workspace that it read.
    pub external_reads: Vec<String>,
    /// The effects on the outside world that it asked for, or the one whose end this event records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectRecord>,
    /// Handles that its value refers to.
    pub handles: Vec<Handle>,
    /// What it used.
    pub ledger: ResourceLedger,
    /// Digest of the canonical JSON of the value shown; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Digest>,
    /// Captured console output; whole, in the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<Handle>,
    /// The session's previous event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Digest>,
    /// What the host did by itself, where no cell ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<HostAct>,
    /// Paths that were not as expected when effects were published or taken back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<PathConflict>,
    /// Changes of commands under ignored paths.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ignored_paths: u64,
    /// How effects of commands were captured.
    #[serde(default, skip_serializing_if = "is_none_captured")]
    pub capture: CaptureTier,
    /// The host's signature over the canonical form of this event without this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn is_none_captured(tier: &CaptureTier) -> bool {
    *tier == CaptureTier::None
}

impl ZeroKernelEvent {
    /// Makes the event of a cell of which nothing else is known yet: it failed, without effects.
    pub fn blank(session: SessionName, cell: CellId, at_ms: u64) -> Self {
        Self {
            schema: EVENT_SCHEMA.to_owned(),
            session,
            cell,
            at_ms,
            source: None,
            outcome: Outcome::Failed,
            error: None,
            disposition: Disposition::None,
            state: StateChange {
                before: None,
                after: None,
                unchanged: true,
            },
            receipts: Vec::new(),
            processes: Vec::new(),
            external_reads: Vec::new(),
            effects: Vec::new(),
            handles: Vec::new(),
            ledger: ResourceLedger::default(),
            value: None,
            console: None,
            previous: None,
            act: None,
            conflicts: Vec::new(),
            ignored_paths: 0,
            capture: CaptureTier::None,
            signature: None,
        }
    }
}

/// What a host did to a session by itself. It is recorded in the session's chain as a cell's end is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HostAct {
    /// Took back what a cell had committed.
    Undo {
        /// That cell's event.
        of: Digest,
    },
    /// Set or deleted facts of the state.
    Set {
        /// Their keys.
        keys: Vec<String>,
    },
    /// Emptied the state.
    Reset,
    /// Began the event's own session as a copy of another one.
    Fork {
        /// The session that was copied.
        from: SessionName,
    },
}

/// A signature by the host's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct Signature {
    /// `ed25519` (RFC 8032).
    pub algorithm: String,
    /// The public key, 64 lowercase hexadecimal digits.
    pub key: String,
    /// The signature, 128 lowercase hexadecimal digits.
    pub value: String,
}

/// What became of one command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct ProcessVerdict {
    /// The argument vector.
    pub argv: Vec<String>,
    /// How the command itself ended.
    pub termination: Termination,
    /// Its exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal's name, if one ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Why it ended.
    pub reason: EndReason,
    /// Whether its whole tree is gone.
    pub cleanup: Cleanup,
    /// Handle of its standard output.
    pub stdout: Handle,
    /// Handle of its standard error.
    pub stderr: Handle,
}
