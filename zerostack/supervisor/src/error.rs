//! What can go wrong on the host's side. A command that fails is not an error: see [`crate::Outcome`].

use std::io;
use std::path::PathBuf;

use crate::protocol::WireError;

/// An operation of this library that could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The owner of the processes was closed: nothing new is started.
    #[error("the cell has closed: no new command is started")]
    Closed,
    /// A field of a [`crate::Spec`] has a value that cannot work.
    #[error("{field}: {why}")]
    Invalid {
        /// Name of the field.
        field: &'static str,
        /// What is wrong and what is accepted.
        why: String,
    },
    /// The supervisor's program is nowhere.
    #[error("zero-supervisor was not found; looked at {}; name it explicitly or set ZEROSTACK_SUPERVISOR", list(.looked))]
    NoSupervisor {
        /// Paths that were tried, in order.
        looked: Vec<PathBuf>,
    },
    /// A demanded tier is not to be had on this machine.
    #[error("{0}")]
    Unsupported(String),
    /// The supervisor could not be started or talked to.
    #[error("supervisor: {0}")]
    Wire(#[from] WireError),
    /// The supervisor gave up before the command ran.
    #[error("supervisor: {0}")]
    Supervisor(String),
    /// Someone else holds the workspace lease.
    #[error("the workspace is in use by {0}")]
    Busy(Box<crate::lease::Busy>),
    /// The work that waited was cancelled.
    #[error("cancelled while waiting for the workspace lease")]
    Cancelled,
    /// The operating system refused something.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, with the path.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}
