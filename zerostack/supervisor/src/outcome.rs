//! What came of one command.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::protocol::{EndReason, Step, Tiers};

/// The result of one command. A non-zero exit or a program that does not exist is a result, not an error.
#[derive(Debug)]
pub struct Outcome {
    /// How the root process ended.
    pub termination: Termination,
    /// Why the tree was ended.
    pub reason: EndReason,
    /// Whether the tree is known to be gone.
    pub cleanup: Cleanup,
    /// Bytes the command wrote, whether kept or not.
    pub bytes: StreamBytes,
    /// Bytes that went to the sinks.
    pub kept: StreamBytes,
    /// Whether the sinks have every byte of both streams.
    pub complete: bool,
    /// Time between start and the end of the tree, as the supervisor measured it.
    pub duration: Duration,
    /// CPU time of all processes of the tree that were reaped.
    pub cpu: Duration,
    /// Largest resident set of any one process of the tree, in bytes (not the sum).
    pub max_rss_bytes: u64,
    /// What it ran under.
    pub tiers: Tiers,
    /// The first failure of a sink; the tree was cancelled for it and `complete` is false.
    pub sink_error: Option<std::io::Error>,
}

/// How the root process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// By itself, with this code.
    Exited {
        /// 0 to 255.
        code: i32,
    },
    /// By a signal.
    Signalled {
        /// Number of the signal.
        signal: i32,
    },
    /// It never ran.
    SpawnFailed {
        /// Step that failed.
        step: Step,
        /// The system's error number.
        errno: i32,
        /// Both in words.
        detail: String,
    },
    /// Its supervisor died, and the status with it. `cleanup` is uncertain then.
    Unknown,
}

/// Whether the tree is known to be gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cleanup {
    /// The kernel said that no process is left.
    Clean,
    /// It could not be established in the regular way.
    Uncertain {
        /// Why.
        detail: String,
        /// Whether the tree was nevertheless found empty before this result was given (by the guard, or by the marker).
        empty: bool,
    },
}

impl Cleanup {
    /// Whether it is [`Cleanup::Clean`].
    #[must_use]
    pub fn is_clean(&self) -> bool {
        matches!(self, Self::Clean)
    }
}

/// Bytes per stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamBytes {
    /// Standard output.
    pub stdout: u64,
    /// Standard error.
    pub stderr: u64,
}

/// Which of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}
