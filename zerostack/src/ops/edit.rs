//! `z.edit`: one change of one file, staged.

use std::sync::Arc;

use zero_contracts::apply::FileOperation;
use zero_contracts::edit::{EditRequest, Expect};
use zero_contracts::{CancelToken, Error, ErrorKind, Handle, HandleKind, Result, WorkspacePath};

use super::reply;
use crate::cell::{Cell, lock};
use crate::frame::CallReply;
use crate::targets::Target;

/// Answers `z.edit`.
pub(crate) fn edit(cell: &Arc<Cell>, request: EditRequest, token: &CancelToken) -> Result<CallReply> {
    let EditRequest {
        target,
        change,
        options,
    } = request;
    let (path, expect) = match cell.kernel.places.target(&target)? {
        Target::Path(path) => (path, options.expect),
        Target::Handle(handle) if handle.kind == HandleKind::Snapshot => (
            snapshot_path(cell, &handle)?,
            Some(options.expect.unwrap_or(Expect::Snapshot(handle))),
        ),
        Target::Handle(handle) => {
            return Err(Error::invalid(format!("`{handle}` is not a target of an edit"))
                .with_path("target")
                .with_accepted(["a workspace path", "z://snapshot/<64 hexadecimal digits> of one file"]));
        }
        Target::Mount(..) => {
            return Err(Error::new(
                ErrorKind::Denied,
                format!("`{target}` lies in a mount, which nothing can change"),
            )
            .with_path(target));
        }
        Target::External(_) => {
            return Err(Error::new(
                ErrorKind::OutsideWorkspace,
                format!("`{target}` lies outside the workspace"),
            )
            .with_path(target));
        }
    };
    let operation = FileOperation::Edit { path, change, expect };
    let receipts = stage(cell, &[operation], token)?;
    match receipts.first() {
        Some(receipt) => reply(receipt),
        None => Err(Error::new(
            ErrorKind::Internal,
            "the engine gave no receipt for an edit",
        )),
    }
}

/// Stages operations in the cell's transaction, all or none.
pub(crate) fn stage(
    cell: &Cell,
    operations: &[FileOperation],
    token: &CancelToken,
) -> Result<Vec<zero_contracts::edit::EditReceipt>> {
    cell.lease(token)?;
    let reads = lock(&cell.reads).clone();
    let receipts = cell.with_transaction(|transaction| transaction.stage(operations, &reads, token))?;
    // What the cell staged is what it knows of the file from now on.
    let mut reads = lock(&cell.reads);
    for receipt in &receipts {
        if let Some(digest) = receipt.after.as_ref().and_then(|after| after.digest) {
            reads.note(receipt.path.clone(), digest);
        }
    }
    Ok(receipts)
}

fn snapshot_path(cell: &Cell, snapshot: &Handle) -> Result<WorkspacePath> {
    let mut manifest = cell.kernel.files.manifest(snapshot)?;
    match manifest.pop() {
        Some((path, _)) if manifest.is_empty() => Ok(path),
        _ => Err(
            Error::invalid("this snapshot is not of one file; give the path, and the snapshot as `expect`")
                .with_path("target"),
        ),
    }
}
