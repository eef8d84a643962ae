//! Where the store lies: never inside the workspace, readable by its owner alone.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use zero_contracts::{Digest, Error, ErrorKind};

use crate::config::{Result, StoreLocation};

/// Names the store's directory without making it; none for a transient one.
///
/// # Errors
/// `not_found` without a home directory; `invalid_input` for a store inside the workspace; `io`.
pub(crate) fn named(location: &StoreLocation, root: &Path) -> Result<Option<PathBuf>> {
    let path = match location {
        StoreLocation::Transient => return Ok(None),
        StoreLocation::At(path) => std::path::absolute(path).map_err(|e| failed(path, &e))?,
        StoreLocation::UserState => {
            let directories = directories::BaseDirs::new().ok_or_else(|| {
                Error::new(
                    ErrorKind::NotFound,
                    "the user has no home directory: name the store's directory",
                )
            })?;
            // `state_dir` is there on Linux alone; elsewhere the local data directory serves.
            let base = directories.state_dir().unwrap_or_else(|| directories.data_local_dir());
            let key = Digest::of(root.as_os_str().as_bytes()).to_hex();
            base.join("zerostack").join(&key[..16])
        }
    };
    outside(&path, root)?;
    Ok(Some(path))
}

/// Finds or makes the store's directory; a transient one comes with what removes it.
///
/// # Errors
/// As for [`named`].
pub(crate) fn make(location: &StoreLocation, root: &Path) -> Result<(PathBuf, Option<tempfile::TempDir>)> {
    let Some(path) = named(location, root)? else {
        let directory = tempfile::Builder::new()
            .prefix("zerostack-")
            .tempdir()
            .map_err(|e| failed(&std::env::temp_dir(), &e))?;
        let path = directory
            .path()
            .canonicalize()
            .map_err(|e| failed(directory.path(), &e))?;
        outside(&path, root)?;
        return Ok((path, Some(directory)));
    };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&path)
        .map_err(|e| failed(&path, &e))?;
    let path = path.canonicalize().map_err(|e| failed(&path, &e))?;
    outside(&path, root)?;
    Ok((path, None))
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::from_io(error, "making the store").with_path(path.display())
}

fn outside(store: &Path, root: &Path) -> Result<()> {
    if !store.starts_with(root) {
        return Ok(());
    }
    Err(
        Error::invalid("the store lies inside the workspace, where commands could reach it")
            .with_path(store.display())
            .with_accepted(["a directory outside the workspace", "the default", "transient"]),
    )
}
