//! What a cell's target string names: a workspace path, a handle, or a file outside.

use std::ffi::OsStr;
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
    /// A file outside the workspace.
    External(PathBuf),
}

/// The directories that decide what an absolute path means.
#[derive(Clone, Debug)]
pub struct Places {
    /// The workspace root, resolved.
    pub root: PathBuf,
    /// The workspace root as the host named it.
    pub named_root: PathBuf,
    /// The store, resolved.
    pub store: PathBuf,
}

impl Places {
    /// Tells what `text` names; nothing is opened, but the `..` of an absolute path are resolved.
    ///
    /// # Errors
    /// `invalid_input` for malformed text, `outside_workspace` for a path that leaves the root or enters the store.
    pub fn target(&self, text: &str) -> Result<Target> {
        if Handle::is_handle(text) {
            return text.parse().map(Target::Handle);
        }
        if !text.starts_with('/') {
            return text.parse().map(Target::Path);
        }
        let raw = path::unescape(text)?;
        let given = Path::new(OsStr::from_bytes(&raw));
        // `..` means what the file system says it means; a path without one is what it says.
        let resolved = given
            .components()
            .any(|part| part == Component::ParentDir)
            .then(|| given.canonicalize());
        let resolved = resolved
            .transpose()
            .map_err(|e| Error::from_io(&e, text).with_path(text))?;
        let absolute = resolved.as_deref().unwrap_or(given);
        if absolute.starts_with(&self.store) {
            return Err(Error::new(
                ErrorKind::OutsideWorkspace,
                "the store is not readable by path; use its handles",
            )
            .with_path(text));
        }
        for root in [&self.root, &self.named_root] {
            if let Ok(below) = absolute.strip_prefix(root) {
                return WorkspacePath::from_raw(below.as_os_str().as_bytes()).map(Target::Path);
            }
        }
        Ok(Target::External(absolute.to_owned()))
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
            named_root: "/link/ws".into(),
            store: "/state/ws".into(),
        }
    }

    #[test]
    fn absolute_paths_inside_are_workspace_paths() {
        let places = places();
        for text in ["/real/ws/a/b", "/link/ws/a/b", "a/b", "./a//b"] {
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
