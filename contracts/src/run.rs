//! `z.run`: one command and everything it starts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::json::union_forms;
use crate::{Content, Handle, WorkspacePath};

/// `z.run(command, options?)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunRequest {
    /// What to run.
    pub command: Command,
    /// How.
    #[serde(default)]
    pub options: RunOptions,
}

/// A command: an argument vector without a shell, or a line for `sh -c`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(
    remote = "Self",
    untagged,
    expecting = "expected an array of arguments, or a line for `sh -c`"
)]
pub enum Command {
    /// A line for `sh -c`.
    Shell(String),
    /// Program and arguments.
    Argv(Vec<String>),
}

union_forms!(Command);

impl Command {
    /// Returns the argument vector that is executed.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Self::Shell(line) => vec!["sh".into(), "-c".into(), line.clone()],
            Self::Argv(argv) => argv.clone(),
        }
    }
}

/// Options of `z.run`.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RunOptions {
    /// Directory inside the workspace; default the cell's `cwd`, else the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<WorkspacePath>,
    /// Variables beside the documented few that the command inherits.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Standard input: text, bytes, or a handle. Without it the command reads end-of-file at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Content>,
    /// Milliseconds before the tree is ended; its output is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Tokens of each stream that are shown (default 2,000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visible: Option<u64>,
}

/// How the command itself ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// It exited.
    Exited,
    /// A signal ended it.
    Signalled,
    /// It could not be started.
    SpawnFailed,
}

/// Why the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// By itself.
    Natural,
    /// Its time was up.
    Timeout,
    /// The cell was cancelled.
    Cancelled,
    /// It used more than its limit of output or processes.
    Limit,
}

/// Whether the kernel's process owner saw the whole tree end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum Cleanup {
    /// No process of the tree is left.
    Clean,
    /// That could not be proven in time.
    Uncertain,
}

/// A value for each output stream.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct Streams<T> {
    /// Standard output.
    pub stdout: T,
    /// Standard error.
    pub stderr: T,
}

/// What `z.run` answers. A non-zero exit is a result, not an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// How the command itself ended.
    pub termination: Termination,
    /// Its exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal's name, such as `SIGKILL`, if one ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Why it could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Why it ended.
    pub reason: EndReason,
    /// Whether its whole tree is gone.
    pub cleanup: Cleanup,
    /// Standard output: all of it, or head and tail with the cut marked where it is.
    pub stdout: String,
    /// Standard error, likewise.
    pub stderr: String,
    /// The exact bytes of both.
    pub handles: Streams<Handle>,
    /// How many bytes each stream had.
    pub bytes: Streams<u64>,
    /// Whether both streams are shown whole.
    pub complete: bool,
    /// Milliseconds from start to empty tree.
    pub duration_ms: u64,
    /// Milliseconds of CPU time of the whole tree.
    pub cpu_ms: u64,
    /// Peak resident memory of its largest process, in bytes.
    pub max_rss_bytes: u64,
}
