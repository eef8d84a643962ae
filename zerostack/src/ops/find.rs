//! `z.find`: text and structure, over the tree as the cell sees it, or over a read-only mount.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use zero_contracts::find::{Absence, FindMode, FindOptions, FindRequest, FindResult, OneOrMany, Skipped};
use zero_contracts::{CancelToken, Error, Handle, Result, SourceView, StructureEngine};

use super::reply;
use crate::cell::Cell;
use crate::frame::CallReply;
use crate::targets::{in_mount, mounted};

/// Answers `z.find`.
pub(crate) fn find(cell: &Arc<Cell>, mut request: FindRequest, token: &CancelToken) -> Result<CallReply> {
    no_handle(&request)?;
    let structure = &*cell.kernel.structure;
    let found = match take_mount(&mut request)? {
        None => search(structure, &*cell.view(), &request, token)?,
        Some(mount) => {
            let view = cell.kernel.mount(&mount)?;
            let mut found = search(structure, &**view, &request, token)?;
            name_in_mount(&mut found, &mount);
            found
        }
    };
    let shown: usize = found.items.iter().map(|item| item.text.len()).sum();
    cell.bytes_read.fetch_add(shown as u64, Ordering::Relaxed);
    reply(&found)
}

/// Searches. That nothing was found is not certified where a glob of the scope names no file: whoever mistyped it would take the
/// wrong answer for a certain one.
fn search(
    structure: &dyn StructureEngine,
    view: &dyn SourceView,
    request: &FindRequest,
    token: &CancelToken,
) -> Result<FindResult> {
    let mut found = structure.find(view, request, token)?;
    if found.absence != Some(Absence::Certified) {
        return Ok(found);
    }
    let scope = request.options.path.as_ref().map_or(&[][..], OneOrMany::as_slice);
    for glob in scope.iter().filter(|text| text.contains(['*', '?', '[', '{'])) {
        let options = FindOptions {
            mode: FindMode::Paths,
            path: Some(OneOrMany::One(glob.clone())),
            ignored: request.options.ignored,
            limit: Some(1),
            ..FindOptions::default()
        };
        let query = "**".to_owned();
        if structure
            .find(view, &FindRequest { query, options }, token)?
            .coverage
            .files
            == 0
        {
            found.absence = Some(Absence::Uncertified);
            found.coverage.skipped.push(Skipped {
                path: glob.clone(),
                why: "matches_no_file".into(),
            });
        }
    }
    Ok(found)
}

/// Refuses a handle as a scope: as a path it would be one that does not exist.
fn no_handle(request: &FindRequest) -> Result<()> {
    let scope = request.options.path.as_ref().map_or(&[][..], OneOrMany::as_slice);
    match scope.iter().find(|text| Handle::is_handle(text)) {
        None => Ok(()),
        Some(handle) => Err(Error::invalid(format!(
            "a search looks into files, and `{handle}` is none: `z.read(handle, {{match: text}})` goes through a handle"
        ))
        .with_path("options.path")),
    }
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
