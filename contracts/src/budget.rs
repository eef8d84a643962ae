//! What one cell may use.

use serde::{Deserialize, Serialize};

const MIB: u64 = 1024 * 1024;

/// The budgets of one cell. Times in milliseconds, sizes in bytes, shown text in tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Budgets {
    /// Size of the source; a larger one is `invalid_input`.
    pub source_bytes: u64,
    /// Wall-clock time; beyond it `deadline`.
    pub wall_ms: u64,
    /// CPU time of the frame's thread; beyond it `budget`, like all that follow.
    pub cpu_ms: u64,
    /// V8's heap.
    pub heap_bytes: u64,
    /// Array buffers, resizable ones at their maximum.
    pub array_buffer_bytes: u64,
    /// Calls on `z`.
    pub calls: u64,
    /// Calls on `z` at once; more wait.
    pub concurrent_calls: u64,
    /// Arguments of calls that are not answered yet.
    pub pending_argument_bytes: u64,
    /// Timers.
    pub timers: u64,
    /// Tokens of the value shown; beyond it the value is projected.
    pub value_tokens: u64,
    /// Tokens of console output shown; beyond it projected.
    pub console_tokens: u64,
    /// Tokens of each output stream of a run shown; beyond it projected.
    pub stream_tokens: u64,
    /// Output of one run that is kept; beyond it the run ends with reason `limit`.
    pub run_output_bytes: u64,
    /// Processes of one run at once; beyond it reason `limit`.
    pub processes: u64,
    /// Bytes staged by edits.
    pub staged_bytes: u64,
    /// Largest text file that `z.read` returns whole without `full`.
    pub inline_bytes: u64,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            source_bytes: 256 * 1024,
            wall_ms: 30_000,
            cpu_ms: 30_000,
            heap_bytes: 128 * MIB,
            array_buffer_bytes: 128 * MIB,
            calls: 10_000,
            concurrent_calls: 64,
            pending_argument_bytes: 64 * MIB,
            timers: 1_000,
            value_tokens: 8_000,
            console_tokens: 2_000,
            stream_tokens: 2_000,
            run_output_bytes: 256 * MIB,
            processes: 512,
            staged_bytes: 1024 * MIB,
            inline_bytes: MIB,
        }
    }
}
