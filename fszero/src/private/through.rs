//! The directories that a private view passes through to the live tree: those that ignore rules exclude.

use std::io::Read as _;
use std::os::fd::AsFd;

use rustix::fs::{Dir, FileType};
use zero_contracts::read::EntryKind;
use zero_contracts::{CancelToken, Error, ErrorKind, WorkspacePath};

use crate::engine::Shared;
use crate::overlay::{Located, Overlay, Slot};
use crate::rules::{EXCLUDE, RULE_BYTES, RULE_FILES, Rules};
use crate::tree::{os, stat_at};

/// The text of a rule file of the live tree, if it is there, can be read and may hold rules.
fn text(shared: &Shared, path: &WorkspacePath) -> Option<Vec<u8>> {
    let (file, meta) = shared.tree.open_file(path).ok()?;
    if meta.size > RULE_BYTES {
        return None;
    }
    let mut text = Vec::new();
    file.take(RULE_BYTES + 1).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The rules at the root of the live tree, those of its own files left out.
pub(super) fn root_rules(shared: &Shared) -> Rules {
    let exclude = WorkspacePath::from_raw(EXCLUDE).unwrap_or_default();
    Rules::root(text(shared, &exclude).as_deref())
}

/// The rules inside a live directory that may have these rule files.
pub(super) fn enter(shared: &Shared, rules: &Rules, directory: &WorkspacePath, present: [bool; 2]) -> Rules {
    let mut texts = [None, None];
    for ((found, name), present) in texts.iter_mut().zip(RULE_FILES).zip(present) {
        if present && let Ok(path) = directory.join(name) {
            *found = text(shared, &path);
        }
    }
    rules.enter(directory, texts)
}

/// Finds every topmost directory that is ignored, there, and seen unchanged by the transaction.
pub(super) fn through(shared: &Shared, staged: &Overlay, token: &CancelToken) -> Result<Vec<WorkspacePath>, Error> {
    let device = rustix::fs::fstat(shared.tree.root()).map_err(|e| os(e, "looking at", &WorkspacePath::root()))?;
    let mut found = Vec::new();
    let mut todo = vec![(WorkspacePath::root(), root_rules(shared))];
    while let Some((path, rules)) = todo.pop() {
        token.check()?;
        let fail = |e| os(e, "listing", &path);
        let Ok(directory) = shared.tree.directory(&path) else {
            continue; // Gone, or closed to everybody.
        };
        if rustix::fs::fstat(&directory).map_err(fail)?.st_dev != device.st_dev {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("another file system is mounted at `{path}`: a private view would not show it"),
            )
            .with_path(&path));
        }
        let mut present = [false; 2];
        let mut inside = Vec::new();
        for entry in Dir::read_from(&directory).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name().to_bytes();
            match entry.file_type() {
                _ if matches!(name, b"." | b".." | b".git") => continue,
                FileType::Directory => {}
                FileType::Unknown
                    if stat_at(directory.as_fd(), name)
                        .map_err(fail)?
                        .is_some_and(|meta| meta.kind == EntryKind::Directory) => {}
                _ => {
                    for (present, rule) in present.iter_mut().zip(RULE_FILES) {
                        *present |= name == rule;
                    }
                    continue;
                }
            }
            if !(path.is_root() && shared.is_own(name)) {
                inside.push(path.join(name)?);
            }
        }
        let rules = enter(shared, &rules, &path, present);
        for child in inside {
            if !rules.ignores(&child, true) {
                todo.push((child, rules.clone()));
            } else if is_unchanged(staged, &child) {
                found.push(child);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_unchanged(staged: &Overlay, path: &WorkspacePath) -> bool {
    match staged.locate(path) {
        Located::Live(origin) => origin == *path,
        Located::Slot(Slot::Directory { origin, .. }) => origin.as_ref() == Some(path),
        _ => false,
    }
}
