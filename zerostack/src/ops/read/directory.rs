//! Directory listings, page by page.

use std::ops::ControlFlow;
use std::sync::Mutex;

use zero_contracts::read::{DirectoryEntry, DirectoryListing, DirectoryTag, EntryKind, ReadOptions};
use zero_contracts::source::{Entry, WalkScope};
use zero_contracts::{CancelToken, Error, Result, SourceView, WorkspacePath, path};

use crate::cell::lock;

/// Entries of a page when no `limit` is given.
const PAGE: u64 = 1_000;

/// Lists a directory; the cursor is the last path of the page before.
pub(super) fn list(
    view: &dyn SourceView,
    directory: &WorkspacePath,
    options: &ReadOptions,
    token: &CancelToken,
) -> Result<DirectoryListing> {
    let limit = options.limit.unwrap_or(PAGE);
    if limit == 0 {
        return Err(Error::invalid("`limit` is at least 1").with_path("options.limit"));
    }
    let after: Option<WorkspacePath> = options.next.as_deref().map(str::parse).transpose()?;
    let found = Mutex::new(Vec::new());
    let scope = WalkScope {
        start: directory.clone(),
        ignored: options.ignored,
        depth: (!options.recursive).then_some(1),
        directories: true,
    };
    view.walk(&scope, token, &|entry: Entry| {
        if entry.path != *directory && after.as_ref().is_none_or(|after| entry.path > *after) {
            lock(&found).push(entry);
        }
        ControlFlow::Continue(())
    })?;
    let mut found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let complete = found.len() <= limit;
    found.truncate(limit);
    let next = if complete {
        None
    } else {
        found.last().map(|entry| entry.path.to_string())
    };
    let entries = found
        .into_iter()
        .map(|entry| describe(view, entry))
        .collect::<Result<_>>()?;
    Ok(DirectoryListing {
        kind: DirectoryTag::Directory,
        entries,
        complete,
        next,
    })
}

fn describe(view: &dyn SourceView, entry: Entry) -> Result<DirectoryEntry> {
    let target = match entry.kind {
        EntryKind::Symlink => Some(path::escape(&view.read_link(&entry.path)?)),
        _ => None,
    };
    let bytes = (entry.kind == EntryKind::File).then_some(entry.bytes);
    Ok(DirectoryEntry {
        path: entry.path,
        kind: entry.kind,
        bytes,
        mode: entry.mode,
        target,
    })
}
