//! `z.find`: text and structure, over the tree as the cell sees it, or over a read-only mount.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use zero_contracts::find::{FindRequest, FindResult, OneOrMany};
use zero_contracts::{CancelToken, Error, Result};

use super::reply;
use crate::cell::Cell;
use crate::frame::CallReply;
use crate::targets::{in_mount, mounted};

/// Answers `z.find`.
pub(crate) fn find(cell: &Arc<Cell>, mut request: FindRequest, token: &CancelToken) -> Result<CallReply> {
    let structure = &cell.kernel.structure;
    let found = match take_mount(&mut request)? {
        None => structure.find(&*cell.view(), &request, token)?,
        Some(mount) => {
            let view = cell.kernel.mount(&mount)?;
            let mut found = structure.find(&**view, &request, token)?;
            name_in_mount(&mut found, &mount);
            found
        }
    };
    let shown: usize = found.items.iter().map(|item| item.text.len()).sum();
    cell.bytes_read.fetch_add(shown as u64, Ordering::Relaxed);
    reply(&found)
}

/// Takes the mount out of a request's scope, which becomes one of paths inside it.
fn take_mount(request: &mut FindRequest) -> Result<Option<String>> {
    let Some(scope) = &mut request.options.path else {
        return Ok(None);
    };
    let mut mounts: Vec<Option<String>> = scope
        .as_slice()
        .iter()
        .map(|path| mounted(path).map(|(mount, _)| mount.to_owned()))
        .collect();
    mounts.dedup();
    match mounts.as_slice() {
        [] | [None] => Ok(None),
        [Some(_)] => {
            let inside = |path: &String| mounted(path).map_or(".", |(_, inside)| inside).to_owned();
            *scope = OneOrMany::Many(scope.as_slice().iter().map(inside).collect());
            Ok(mounts.pop().flatten())
        }
        _ => {
            Err(Error::invalid("one search looks into one tree: the workspace, or one mount").with_path("options.path"))
        }
    }
}

/// Names what was found in a mount as a cell does.
fn name_in_mount(found: &mut FindResult, mount: &str) {
    let name = |path: &mut String| *path = in_mount(mount, path);
    for item in &mut found.items {
        name(&mut item.path);
        item.definition.iter_mut().for_each(|site| name(&mut site.path));
        item.alternatives.iter_mut().for_each(|site| name(&mut site.path));
    }
    found
        .coverage
        .skipped
        .iter_mut()
        .for_each(|skipped| name(&mut skipped.path));
}
