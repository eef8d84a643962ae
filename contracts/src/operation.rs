//! The six operations of `z`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One of the six operations a cell can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// `z.read`
    Read,
    /// `z.find`
    Find,
    /// `z.edit`
    Edit,
    /// `z.apply`
    Apply,
    /// `z.run`
    Run,
    /// `z.state.*`
    State,
}

impl Operation {
    /// All six, in the order of the documentation.
    pub const ALL: [Self; 6] = [Self::Read, Self::Find, Self::Edit, Self::Apply, Self::Run, Self::State];

    /// Returns its name on `z`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Find => "find",
            Self::Edit => "edit",
            Self::Apply => "apply",
            Self::Run => "run",
            Self::State => "state",
        }
    }

    /// Tells whether a call may leave an effect behind if it is cut short.
    pub const fn may_have_effects(self) -> bool {
        matches!(self, Self::Edit | Self::Apply | Self::Run)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
