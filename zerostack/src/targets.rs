//! What a cell's target string names: a workspace path, a handle, or a file outside.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use zero_contracts::{Error, ErrorKind, Handle, WorkspacePath, path};

use crate::config::{ExternalReads, Result};

/// What a target string names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Something in the workspace.
    Path(WorkspacePath),
    /// Something durable.
    Handle(Handle),
    /// Something in a read-only mount, by the mount's name.
    Mount(String, WorkspacePath),
    /// A file outside the workspace.
    External(PathBuf),
}

/// What begins a target in a read-only mount. A file of the workspace whose name begins so is reached by `./mount:…`.
const MOUNT: &str = "mount:";

/// Takes a target in a mount apart: the mount's name, and the rest.
pub(crate) fn mounted(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix(MOUNT)?;
    Some(match text.split_once('/') {
        None | Some((_, "")) => (text.trim_end_matches('/'), "."),
        Some(parts) => parts,
    })
}

/// Writes a path of a mount as a cell names it.
pub(crate) fn in_mount(mount: &str, path: &str) -> String {
    format!("{MOUNT}{mount}/{path}")
}

/// Directories of the system, whose links are not files' names.
const SYSTEM: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The directories that decide what an absolute path means.
#[derive(Clone, Debug)]
pub struct Places {
    /// The workspace root, resolved.
    pub root: PathBuf,
    /// The store, resolved.
    pub store: PathBuf,
}

impl Places {
    /// Tells what `text` names; nothing is opened, but the symlinks and `..` of an absolute path are followed.
    ///
    /// # Errors
    /// `invalid_input` for malformed text, `outside_workspace` for a path that leaves the root or enters the store.
    pub fn target(&self, text: &str) -> Result<Target> {
        if Handle::is_handle(text) {
            return text.parse().map(Target::Handle);
        }
        if let Some((mount, path)) = mounted(text) {
            return Ok(Target::Mount(mount.to_owned(), path.parse()?));
        }
        if !text.starts_with('/') {
            return text.parse().map(Target::Path);
        }
        let raw = path::unescape(text)?;
        let given = Path::new(OsStr::from_bytes(&raw));
        // Whatever the name, what lies inside the root is that workspace path: so it is seen with what the cell staged.
        let absolute = self.resolve(given);
        if absolute.starts_with(&self.store) {
            return Err(Error::new(
                ErrorKind::OutsideWorkspace,
                "the store is not readable by path; use its handles",
            )
            .with_path(text));
        }
        if let Ok(below) = absolute.strip_prefix(&self.root) {
            return WorkspacePath::from_raw(below.as_os_str().as_bytes()).map(Target::Path);
        }
        // The engine resolves it again, in one step with the opening.
        let has_parent = given.components().any(|part| part == Component::ParentDir);
        Ok(Target::External(if has_parent { absolute } else { given.to_owned() }))
    }

    /// Follows the symlinks and `..` of an absolute path until it has entered the root or ends; what does not exist is
    /// taken as it is written. Nothing is followed through the system's own directories.
    fn resolve(&self, path: &Path) -> PathBuf {
        let mut left: Vec<OsString> = path
            .components()
            .rev()
            .map(|part| part.as_os_str().to_owned())
            .collect();
        let mut at = PathBuf::from("/");
        let mut links = 40;
        while let Some(part) = left.pop() {
            if at.starts_with(&self.root) && part != ".." {
                at.push(part);
                continue;
            }
            match part.as_bytes() {
                b"/" => at = PathBuf::from("/"),
                b"." => {}
                b".." => drop(at.pop()),
                _ => {
                    let next = at.join(part);
                    let system = SYSTEM.iter().any(|system| next.starts_with(system));
                    match std::fs::read_link(&next) {
                        Ok(target) if links > 0 && !system => {
                            links -= 1;
                            left.extend(target.components().rev().map(|part| part.as_os_str().to_owned()));
                        }
                        _ => at = next,
                    }
                }
            }
        }
        at
    }
}

impl ExternalReads {
    /// Says whether a file outside may be read.
    ///
    /// # Errors
    /// `denied` with the roots that may.
    pub fn check(&self, path: &Path) -> Result<()> {
        let shown = path::escape(path.as_os_str().as_bytes());
        match self {
            Self::Allow => Ok(()),
            Self::Deny => {
                Err(Error::new(ErrorKind::Denied, "the host allows no reads outside the workspace").with_path(shown))
            }
            Self::Roots(roots) => {
                // Resolved first: a symlink below an allowed root must not lead elsewhere.
                let real = path
                    .canonicalize()
                    .map_err(|e| Error::from_io(&e, &shown).with_path(&shown))?;
                let allowed = roots
                    .iter()
                    .any(|root| root.canonicalize().is_ok_and(|root| real.starts_with(root)));
                if allowed {
                    return Ok(());
                }
                Err(Error::new(ErrorKind::Denied, "the host does not allow reads there")
                    .with_path(shown)
                    .with_accepted(roots.iter().map(|root| path::escape(root.as_os_str().as_bytes()))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            root: "/real/ws".into(),
            store: "/state/ws".into(),
        }
    }

    #[test]
    fn absolute_paths_inside_are_workspace_paths() {
        let places = places();
        for text in ["/real/ws/a/b", "a/b", "./a//b"] {
            assert_eq!(
                places.target(text).unwrap(),
                Target::Path("a/b".parse().unwrap()),
                "{text}"
            );
        }
        assert_eq!(
            places.target("/real/wsx").unwrap(),
            Target::External("/real/wsx".into())
        );
        assert_eq!(places.target("/real/ws").unwrap(), Target::Path(WorkspacePath::root()));
    }

    #[test]
    fn every_alias_of_the_root_is_the_root() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().canonicalize().unwrap();
        let root = at.join("ws");
        std::fs::create_dir_all(root.join("d")).unwrap();
        std::os::unix::fs::symlink("ws", at.join("alias")).unwrap();
        std::os::unix::fs::symlink(root.join("d"), at.join("deep")).unwrap();
        std::os::unix::fs::symlink("loop", at.join("loop")).unwrap();
        std::os::unix::fs::symlink(root.join("new"), at.join("to-new")).unwrap();
        let places = Places {
            root: root.clone(),
            store: "/state/ws".into(),
        };
        let target = |path: &str| places.target(at.join(path).to_str().unwrap()).unwrap();
        let inside = |path: &str| Target::Path(path.parse().unwrap());
        assert_eq!(target("alias/d/x"), inside("d/x"));
        assert_eq!(target("deep/x"), inside("d/x"));
        assert_eq!(target("deep/../y"), inside("y"));
        // It need not exist: a cell may have staged it.
        assert_eq!(
            (target("to-new"), target("alias/not/there")),
            (inside("new"), inside("not/there"))
        );
        assert_eq!(target("loop"), Target::External(at.join("loop")));
        assert_eq!(target("alias/../other"), Target::External(at.join("other")));
    }

    #[test]
    fn mounts_have_names() {
        let places = places();
        let mount = |name: &str, path: &str| Target::Mount(name.into(), path.parse().unwrap());
        assert_eq!(places.target("mount:docs/a/b").unwrap(), mount("docs", "a/b"));
        assert_eq!(places.target("mount:docs").unwrap(), mount("docs", "."));
        assert_eq!(
            places.target("mount:docs/../x").unwrap_err().kind,
            ErrorKind::OutsideWorkspace
        );
        assert_eq!(
            places.target("./mount:docs/a").unwrap(),
            Target::Path("./mount:docs/a".parse().unwrap())
        );
    }

    #[test]
    fn the_store_and_what_leaves_the_root_are_refused() {
        let places = places();
        for text in ["/state/ws/objects/x", "../a", "a/../../b"] {
            assert_eq!(
                places.target(text).unwrap_err().kind,
                ErrorKind::OutsideWorkspace,
                "{text}"
            );
        }
    }
}
