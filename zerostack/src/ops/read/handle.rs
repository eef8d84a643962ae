//! Handles: exact bytes back, or the record they name.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use zero_contracts::content::{Bytes, Content};
use zero_contracts::read::{Encoding, ReadOptions, ReadResult};
use zero_contracts::{CancelToken, Error, ErrorKind, Handle, HandleKind, JsonValue, Result, WorkspacePath};

use super::searched::{Measured, Searched};
use super::select::Selection;
use super::{binary_view, directory_options, encoding, refuse, stored_view};
use crate::cell::{Cell, lock};

/// Reads what a handle names.
pub(super) fn read(cell: &Cell, handle: Handle, options: &ReadOptions, token: &CancelToken) -> Result<ReadResult> {
    refuse(&directory_options(options), "a handle")?;
    refuse(&[("snapshot", options.snapshot)], "a handle, which never changes")?;
    let objects = &cell.kernel.objects;
    match handle.kind {
        HandleKind::Blob => blob(cell, handle, None, options, token),
        HandleKind::Snapshot => {
            let mut manifest = cell.kernel.files.manifest(&handle)?;
            let one = if manifest.len() == 1 { manifest.pop() } else { None };
            match one {
                Some((path, state)) if state.digest.is_some() => {
                    let digest = state.digest.unwrap_or(handle.digest);
                    blob(cell, Handle::blob(digest), Some(&path), options, token)
                }
                _ => {
                    let entries = cell.kernel.files.manifest(&handle)?;
                    let entries: Vec<_> = entries
                        .iter()
                        .map(|(path, state)| serde_json::json!({ "path": path, "state": state }))
                        .collect();
                    Ok(ReadResult::Record(JsonValue(
                        serde_json::json!({ "kind": "snapshot", "entries": entries }),
                    )))
                }
            }
        }
        HandleKind::Event => {
            let bytes = objects.get(&handle.digest).map_err(|e| match e.kind {
                ErrorKind::NotFound => Error::new(e.kind, format!("{handle} is not in the store")),
                _ => e,
            })?;
            let event = serde_json::from_slice(&bytes)
                .map_err(|e| Error::new(ErrorKind::Corrupt, format!("{handle} is not an event: {e}")))?;
            Ok(ReadResult::Record(JsonValue(event)))
        }
        HandleKind::Effect => {
            let staged = lock(&cell.intents).record(handle);
            let record = staged.map_or_else(|| cell.kernel.effect(&handle), Ok)?;
            let record = serde_json::to_value(record)
                .map_err(|e| Error::new(ErrorKind::Internal, format!("an effect cannot be written as JSON: {e}")))?;
            Ok(ReadResult::Record(JsonValue(record)))
        }
    }
}

fn blob(
    cell: &Cell,
    handle: Handle,
    path: Option<&WorkspacePath>,
    options: &ReadOptions,
    token: &CancelToken,
) -> Result<ReadResult> {
    let objects = &cell.kernel.objects;
    let Some(size) = objects.size(&handle.digest)? else {
        return Err(Error::new(
            ErrorKind::NotFound,
            format!("{handle} is not in the store: it was never there, or was collected"),
        ));
    };
    let selection = Selection::of(options)?;
    let whole = options.full || selection.is_some();
    if size > cell.budgets.heap_bytes && whole {
        return Err(Error::new(
            ErrorKind::Budget,
            format!(
                "{handle} has {size} bytes, more than the heap budget of {}",
                cell.budgets.heap_bytes
            ),
        ));
    }
    if size > cell.budgets.inline_bytes && !whole {
        let head = objects.get_range(&handle.digest, zero_contracts::ByteRange::new(0, 8 * 1024)?)?;
        return stored_view(cell, handle.digest, size, &head, path, token).map(ReadResult::View);
    }
    if let Some(selection) = selection.as_ref().filter(|selection| selection.is_match()) {
        let known = lock(&cell.held).content(&handle.digest);
        let held = match known {
            Some(held) => held,
            None => {
                let bytes = objects.get(&handle.digest)?;
                cell.bytes_read.fetch_add(size, Ordering::Relaxed);
                Arc::new(Searched {
                    digest: handle.digest,
                    measured: Measured::new(&bytes),
                    bytes: bytes.into(),
                    file: None,
                })
            }
        };
        let part = selection.select(cell, path.unwrap_or(&WorkspacePath::root()), &held.bytes, token)?;
        lock(&cell.held).keep(&held, part.goes_on(), cell.budgets.heap_bytes);
        return part.of(&held, None).map(ReadResult::Partial);
    }
    let bytes = objects.get(&handle.digest)?;
    cell.bytes_read.fetch_add(size, Ordering::Relaxed);
    if let Some(selection) = selection {
        let part = selection.select(cell, path.unwrap_or(&WorkspacePath::root()), &bytes, token)?;
        return part.partial(&bytes, handle.digest, None).map(ReadResult::Partial);
    }
    Ok(match encoding(&bytes) {
        Encoding::Utf8 => ReadResult::Whole(Content::from_bytes(bytes)),
        Encoding::Binary if options.full => ReadResult::Whole(Content::Bytes(Bytes(bytes))),
        Encoding::Binary => ReadResult::View(binary_view(handle.digest, &bytes, size)),
    })
}
