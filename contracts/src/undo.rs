//! Undo: taking back what a cell committed.

use serde::{Deserialize, Serialize};

use crate::edit::EditReceipt;
use crate::response::{Disposition, PathConflict};
use crate::{Handle, WorkspacePath};

/// How a committed cell is taken back.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UndoOptions {
    /// Only what lies at or below these paths; without it everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<WorkspacePath>>,
    /// Tell what would be done, with the differences, and do nothing.
    #[serde(skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// What an undo did, or would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct UndoReport {
    /// `committed` if a path was changed; `none` for a dry run, and where nothing was left to take back.
    pub disposition: Disposition,
    /// One a path that is, or would be, changed.
    pub receipts: Vec<EditReceipt>,
    /// Paths that were left as they are, because they are not what the cell left any more: with the three versions.
    pub conflicts: Vec<PathConflict>,
    /// Whether the session's state was taken back, too: never. Facts that the cell set stay set.
    pub state_undone: bool,
    /// The undo's own event, by which it can be undone; absent where nothing was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Handle>,
}
