//! The one error type that crosses every border, from an engine to a cell and to the host.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Location;

/// Result with the error of the contracts.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $retryable:literal;)*) => {
        /// What went wrong, as a program tells it apart.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(test, derive(proptest_derive::Arbitrary))]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorKind {
            $($(#[$doc])* $name,)*
        }

        impl ErrorKind {
            /// Every kind, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the word used in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Tells whether the same call may succeed later without change.
            pub const fn is_retryable(self) -> bool {
                match self { $(Self::$name => $retryable,)* }
            }
        }
    };
}

error_kinds! {
    /// A request is malformed: an unknown option, a value out of range, a cell that is too large.
    InvalidInput = "invalid_input", false;
    /// The cell's source does not parse.
    Syntax = "syntax", false;
    /// A path leaves the workspace, or enters the store.
    OutsideWorkspace = "outside_workspace", false;
    /// The named thing does not exist.
    NotFound = "not_found", false;
    /// The world is not as the caller expected: a guard failed, a match is missing or ambiguous, a file changed.
    Conflict = "conflict", false;
    /// Policy or the operating system forbids it.
    Denied = "denied", false;
    /// The host cancelled.
    Cancelled = "cancelled", false;
    /// The wall-clock deadline passed.
    Deadline = "deadline", true;
    /// A budget other than wall time is spent.
    Budget = "budget", false;
    /// This platform, build or engine does not do it.
    Unsupported = "unsupported", false;
    /// Someone else holds what is needed.
    Busy = "busy", true;
    /// A process tree could not be proven gone.
    CleanupUncertain = "cleanup_uncertain", false;
    /// Stored bytes do not match their digest or frame.
    Corrupt = "corrupt", false;
    /// The operating system failed.
    Io = "io", false;
    /// The cell threw.
    Exception = "exception", false;
    /// A defect of the kernel itself.
    Internal = "internal", false;
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error with what a caller needs to act: its kind, where, and what would have been accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
#[error("{kind}: {detail}{}", AcceptedList(accepted))]
pub struct Error {
    /// What went wrong.
    pub kind: ErrorKind,
    /// One or two sentences for a person or a model: what, and what to do next.
    pub detail: String,
    /// Whether the same call may succeed later without change.
    pub retryable: bool,
    /// The path, field or place inside a value that is concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Where in the cell's source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// What would have been accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<String>,
}

/// Stands between a detail and the accepted values in an error's text, and between those.
pub(crate) const ACCEPTED: [&str; 2] = ["; accepted: ", " | "];

struct AcceptedList<'a>(&'a [String]);

impl fmt::Display for AcceptedList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            accepted => write!(f, "{}{}", ACCEPTED[0], accepted.join(ACCEPTED[1])),
        }
    }
}

impl Error {
    /// Makes an error; `retryable` follows from the kind.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            retryable: kind.is_retryable(),
            path: None,
            location: None,
            accepted: Vec::new(),
        }
    }

    /// Makes an `invalid_input` error.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, detail)
    }

    /// Names the path, field or place inside a value.
    #[must_use]
    pub fn with_path(mut self, path: impl ToString) -> Self {
        self.path = Some(path.to_string());
        self
    }

    /// Names the place in the cell's source.
    #[must_use]
    pub fn with_location(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    /// Lists what would have been accepted.
    #[must_use]
    pub fn with_accepted<T: Into<String>>(mut self, accepted: impl IntoIterator<Item = T>) -> Self {
        self.accepted = accepted.into_iter().map(Into::into).collect();
        self
    }

    /// Overrides whether a retry makes sense.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    /// Wraps an operating-system error met while doing `what`. Missing files are `not_found`, refused ones `denied`.
    pub fn from_io(error: &std::io::Error, what: impl fmt::Display) -> Self {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Denied,
            _ => ErrorKind::Io,
        };
        Self::new(kind, format!("{what}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_json_and_in_rust_are_the_same() {
        for kind in ErrorKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert_eq!(ErrorKind::ALL.len(), 16);
    }
}
