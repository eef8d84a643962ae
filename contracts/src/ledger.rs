//! What one cell used.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Operation;

/// What one cell used: times in milliseconds, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceLedger {
    /// Wall-clock time from admission to response.
    pub wall_ms: f64,
    /// CPU time of the frame's thread.
    pub cpu_ms: f64,
    /// Peak of V8's heap.
    pub heap_peak_bytes: u64,
    /// Calls per operation.
    pub calls: BTreeMap<Operation, u64>,
    /// Bytes read from the workspace, the store and outside.
    pub bytes_read: u64,
    /// Bytes staged by edits.
    pub bytes_written: u64,
    /// Bytes of value and console shown to the caller.
    pub bytes_visible: u64,
    /// Tokens the value, console and run output would have cost whole.
    pub tokens_raw: u64,
    /// Tokens that were shown.
    pub tokens_visible: u64,
    /// Processes of all runs.
    pub processes: ProcessCounts,
    /// How commands were confined.
    pub confinement: ConfinementTier,
    /// Calls still alive at the response; 0 for a completed cell.
    pub live_tasks: u64,
    /// Processes still alive at the response; 0 for a completed cell.
    pub live_children: u64,
}

/// Processes of all runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", default)]
pub struct ProcessCounts {
    /// Commands started.
    pub started: u64,
    /// Command trees proven empty.
    pub reaped: u64,
    /// Command trees not proven empty.
    pub unproven: u64,
}

/// How commands were confined; no field is ever downgraded silently.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", default)]
pub struct ConfinementTier {
    /// What bounds writes: `landlock` or `none`; absent if nothing ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// What bounds the tree: `cgroup`, `pid_namespace` or `rlimits`; absent if nothing ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}
