//! Trees on disk, as scenarios compare them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// `directory`, a symlink's target, or a file's content with what is not UTF-8 replaced.
    pub what: String,
    /// Permission bits of a file.
    pub mode: Option<u32>,
}

/// Everything below a directory by path; `.gitkeep` stands for an empty directory and is left out.
///
/// # Errors
/// From the file system.
pub fn image(root: &Path) -> io::Result<BTreeMap<PathBuf, Node>> {
    fn visit(directory: &Path, root: &Path, found: &mut BTreeMap<PathBuf, Node>) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let metadata = fs::symlink_metadata(&path)?;
            let mut mode = None;
            let what = if metadata.is_symlink() {
                format!("link to {}", fs::read_link(&path)?.display())
            } else if metadata.is_dir() {
                visit(&path, root, found)?;
                "directory".to_owned()
            } else if metadata.is_file() {
                mode = Some(metadata.permissions().mode() & 0o7777);
                String::from_utf8_lossy(&fs::read(&path)?).into_owned()
            } else {
                "something else".to_owned()
            };
            if path.file_name().is_none_or(|name| name != ".gitkeep") {
                let path = path.strip_prefix(root).unwrap_or(&path).to_owned();
                found.insert(path, Node { what, mode });
            }
        }
        Ok(())
    }
    let mut found = BTreeMap::new();
    visit(root, root, &mut found)?;
    Ok(found)
}

/// Tells what is not as wanted. Of modes that a checkout may widen by the user's mask only the executable bit counts,
/// unless `wanted` was given an exact one that no mask makes.
pub fn differences(given: &BTreeMap<PathBuf, Node>, wanted: &BTreeMap<PathBuf, Node>) -> Vec<String> {
    let alike = |a: &Node, b: &Node| {
        let exact = |mode: u32| !matches!(mode, 0o644 | 0o664 | 0o755 | 0o775);
        let modes = match (a.mode, b.mode) {
            (Some(a), Some(b)) if !exact(a) && !exact(b) => a & 0o100 == b & 0o100,
            (a, b) => a == b,
        };
        a.what == b.what && modes
    };
    let paths = wanted
        .keys()
        .chain(given.keys().filter(|path| !wanted.contains_key(*path)));
    paths
        .filter_map(|path| match (given.get(path), wanted.get(path)) {
            (Some(given), Some(wanted)) if alike(given, wanted) => None,
            (given, wanted) => Some(format!("{}: {given:?}, not {wanted:?}", path.display())),
        })
        .collect()
}

/// Copies a tree's content, with executable bits and symlinks.
///
/// # Errors
/// From the file system.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&path)?, to)?;
        } else if metadata.is_dir() {
            fs::create_dir(&to)?;
            copy(&path, &to)?;
        } else if path.file_name().is_none_or(|name| name != ".gitkeep") {
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}
