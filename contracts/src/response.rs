//! The one terminal response of a cell.

use serde::{Deserialize, Serialize};

use crate::json::present;
use crate::{Digest, Error, Handle, JsonValue, ResourceLedger};

/// The word `ZeroKernel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
pub enum Protocol {
    /// Always this.
    #[default]
    ZeroKernel,
}

/// How a cell ended. Deadline and budget are `Failed`; only the host's cancellation is `Cancelled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
pub enum Outcome {
    /// Everything was published.
    Completed,
    /// The host cancelled; nothing was published.
    Cancelled,
    /// Something went wrong; nothing was published.
    Failed,
}

/// When a cell failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before anything ran.
    Rejected,
    /// While the cell ran.
    Running,
    /// While its effects were published.
    Settling,
}

/// What one cell came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct ZeroKernelResponse {
    /// The word `ZeroKernel`.
    pub protocol: Protocol,
    /// How it ended.
    pub outcome: Outcome,
    /// The exact projection recorded by the terminal event; absent where the cell returned nothing.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub value: Option<JsonValue>,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ResponseError>,
    /// What became of its effects.
    pub effects: EffectsReport,
    /// Every handle that the value refers to; then those of output of commands and of the console of which a part was not
    /// shown (of the first 32 such streams; the event names all).
    pub handles: Vec<Handle>,
    /// The terminal event; absent only when it could not be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Handle>,
    /// The session's state root.
    pub state: StateChange,
    /// What it used.
    pub ledger: ResourceLedger,
    /// Captured console output, projected.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub console: String,
}

impl ZeroKernelResponse {
    /// Answers for a cell that never ran and left no event, as when the workspace could not even be opened.
    pub fn rejected(error: Error) -> Self {
        Self {
            protocol: Protocol::ZeroKernel,
            outcome: Outcome::Failed,
            value: None,
            error: Some(ResponseError::new(error, Phase::Rejected)),
            effects: EffectsReport {
                disposition: Disposition::NeverAdmitted,
                ..EffectsReport::default()
            },
            handles: Vec::new(),
            event: None,
            state: StateChange {
                before: None,
                after: None,
                unchanged: true,
            },
            ledger: ResourceLedger::default(),
            console: String::new(),
        }
    }
}

/// An error with the phase it happened in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct ResponseError {
    /// What went wrong.
    pub kind: crate::ErrorKind,
    /// What, and what to do next.
    pub detail: String,
    /// Whether the same cell may succeed later without change.
    pub retryable: bool,
    /// When.
    pub phase: Phase,
    /// The path, field or place inside a value that is concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Where in the cell's source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<crate::Location>,
    /// What would have been accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<String>,
}

impl From<ResponseError> for Error {
    fn from(error: ResponseError) -> Self {
        let ResponseError {
            kind,
            detail,
            retryable,
            phase: _,
            path,
            location,
            accepted,
        } = error;
        Self {
            kind,
            detail,
            retryable,
            path,
            location,
            accepted,
        }
    }
}

impl ResponseError {
    /// Adds the phase to an error.
    pub fn new(error: Error, phase: Phase) -> Self {
        let Error {
            kind,
            detail,
            retryable,
            path,
            location,
            accepted,
        } = error;
        Self {
            kind,
            detail,
            retryable,
            phase,
            path,
            location,
            accepted,
        }
    }
}

/// What became of a cell's effects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct EffectsReport {
    /// What became of them.
    pub disposition: Disposition,
    /// How many paths changed, or were put back.
    pub receipts: u64,
    /// Paths that were not as expected.
    pub conflicts: Vec<PathConflict>,
    /// Changes of ignored paths by commands, which are outside "no trace".
    pub ignored_paths: u64,
    /// How effects of commands were captured.
    pub capture: CaptureTier,
}

impl Default for EffectsReport {
    fn default() -> Self {
        Self {
            disposition: Disposition::None,
            receipts: 0,
            conflicts: Vec::new(),
            ignored_paths: 0,
            capture: CaptureTier::None,
        }
    }
}

/// What became of a cell's effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// It had none.
    None,
    /// All are published.
    Committed,
    /// All were taken back.
    Restored,
    /// The cell never ran.
    NeverAdmitted,
}

/// How effects of commands are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub enum CaptureTier {
    /// No command ran.
    #[default]
    None,
    /// On a private overlay of the workspace.
    Private,
    /// By comparing the tree before and after.
    Baseline,
    /// Not at all: the tree is too large; what commands wrote is not restored.
    UnattributedWrites,
}

/// A path that was not as expected, with what is known of both versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct PathConflict {
    /// The path.
    pub path: String,
    /// What was expected and what was found.
    pub detail: String,
    /// The version this cell made or expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<Handle>,
    /// The version found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theirs: Option<Handle>,
}

/// The session's state root before and after a cell.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct StateChange {
    /// Root before; absent for an empty state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// Root after; absent for an empty state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
    /// Whether both are the same.
    pub unchanged: bool,
}
