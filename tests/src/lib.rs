//! Runs scenario folders through the whole kernel.
//!
//! A scenario is a folder: `input/` (the tree before), `cell.js`, `expected/` (the tree after; without it the tree must not
//! change), and `response.json` (what the response must contain). A person can add one without Rust, and any binding of the
//! kernel can run them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use zerostack::{KernelConfig, StoreLocation, ZeroKernel};

/// A scenario's folder.
pub struct Scenario(PathBuf);

impl Scenario {
    /// Finds every scenario below a directory, in order of name.
    ///
    /// # Errors
    /// From the file system.
    pub fn all(directory: &Path) -> io::Result<Vec<Self>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.join("cell.js").exists() {
                found.push(Self(path));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// The folder's name.
    pub fn name(&self) -> String {
        self.0
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Runs the scenario; tells what is not as it says.
    ///
    /// # Errors
    /// From the file system.
    pub fn run(&self) -> io::Result<Vec<String>> {
        let workspace = tempfile::tempdir()?;
        let input = self.0.join("input");
        if input.exists() {
            copy(&input, workspace.path())?;
        }
        let before = tree(workspace.path())?;
        let kernel = ZeroKernel::open(KernelConfig {
            store: StoreLocation::Transient,
            ..KernelConfig::new(workspace.path())
        })
        .map_err(io::Error::other)?;
        let response = kernel.execute_cell(&fs::read_to_string(self.0.join("cell.js"))?);
        let response = serde_json::to_value(&response)?;
        let wanted: Value = serde_json::from_slice(&fs::read(self.0.join("response.json"))?)?;

        let mut misses = Vec::new();
        contains(&response, &wanted, "response", &mut misses);
        let expected = self.0.join("expected");
        let wanted = if expected.exists() { tree(&expected)? } else { before };
        let after = tree(workspace.path())?;
        for path in wanted
            .keys()
            .chain(after.keys().filter(|path| !wanted.contains_key(*path)))
        {
            if wanted.get(path) != after.get(path) {
                misses.push(format!(
                    "{}: {:?}, not {:?}",
                    path.display(),
                    after.get(path),
                    wanted.get(path)
                ));
            }
        }
        Ok(misses)
    }
}

/// Every member of `wanted` must be in `given`; a string that begins with `~` must be part of the given one.
fn contains(given: &Value, wanted: &Value, at: &str, misses: &mut Vec<String>) {
    match (given, wanted) {
        (Value::Object(given), Value::Object(wanted)) => {
            for (key, wanted) in wanted {
                contains(
                    given.get(key).unwrap_or(&Value::Null),
                    wanted,
                    &format!("{at}.{key}"),
                    misses,
                );
            }
        }
        (Value::String(given), Value::String(wanted)) if wanted.starts_with('~') => {
            if !given.contains(&wanted[1..]) {
                misses.push(format!("{at}: {given:?} does not contain {:?}", &wanted[1..]));
            }
        }
        _ if given == wanted => {}
        _ => misses.push(format!("{at}: {given}, not {wanted}")),
    }
}

/// Kind and content of everything in a tree, by path. `.gitkeep` stands for an empty directory and is left out.
fn tree(root: &Path) -> io::Result<BTreeMap<PathBuf, String>> {
    fn visit(directory: &Path, root: &Path, found: &mut BTreeMap<PathBuf, String>) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let metadata = fs::symlink_metadata(&path)?;
            let what = if metadata.is_symlink() {
                format!("link to {}", fs::read_link(&path)?.display())
            } else if metadata.is_dir() {
                visit(&path, root, found)?;
                "directory".to_owned()
            } else {
                String::from_utf8_lossy(&fs::read(&path)?).into_owned()
            };
            if path.file_name().is_none_or(|name| name != ".gitkeep") {
                found.insert(path.strip_prefix(root).unwrap_or(&path).to_owned(), what);
            }
        }
        Ok(())
    }
    let mut found = BTreeMap::new();
    visit(root, root, &mut found)?;
    Ok(found)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
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
