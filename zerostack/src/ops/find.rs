//! `z.find`: text and structure, over the tree as the cell sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use zero_contracts::find::FindRequest;
use zero_contracts::{CancelToken, Result};

use super::reply;
use crate::cell::Cell;
use crate::frame::CallReply;

/// Answers `z.find`.
pub(crate) fn find(cell: &Arc<Cell>, request: FindRequest, token: &CancelToken) -> Result<CallReply> {
    let found = cell.kernel.structure.find(&*cell.view(), &request, token)?;
    let shown: usize = found.items.iter().map(|item| item.text.len()).sum();
    cell.bytes_read.fetch_add(shown as u64, Ordering::Relaxed);
    reply(&found)
}
