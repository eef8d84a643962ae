//! The list of places a command may write to, by default.
//!
//! A command may change the workspace it was given, temporary files, the standard devices, and the caches of common tool
//! chains, without which no build works. The store is never among them: a path that contains the store is replaced
//! by what lies beside the store in it (new names directly in such a directory are then denied; where that befalls the
//! temporary directory, [`crate::Processes`] gives its commands one of their own and sets `TMPDIR`).

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::spec::Files;

/// Devices every command may write to.
pub const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// Where temporary files may go, besides `TMPDIR` of the command's environment.
pub const TEMPORARY: &[&str] = &["/tmp", "/var/tmp"];

/// Tool-chain caches: variable that names the directory, and where it is beneath the home directory without it.
pub const CACHES: &[(&str, &str)] = &[
    ("XDG_CACHE_HOME", ".cache"),
    ("CARGO_HOME", ".cargo"),
    ("RUSTUP_HOME", ".rustup"),
    ("GOCACHE", ".cache/go-build"),
    ("GOMODCACHE", "go/pkg"),
    ("npm_config_cache", ".npm"),
    ("PNPM_HOME", ".local/share/pnpm"),
    ("YARN_CACHE_FOLDER", ".yarn"),
    ("BUN_INSTALL", ".bun/install"),
    ("PIP_CACHE_DIR", ".cache/pip"),
    ("GRADLE_USER_HOME", ".gradle"),
    ("", ".m2"),
    ("", ".ivy2"),
    ("NUGET_PACKAGES", ".nuget"),
    ("CCACHE_DIR", ".ccache"),
];

/// The documented defaults for tool-chain caches under an environment (the command's).
#[must_use]
pub fn caches(env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let value = |name: &str| {
        env.iter()
            .rev()
            .find(|(is, _)| is == name)
            .map(|(_, value)| PathBuf::from(value))
    };
    let home = value("HOME").filter(|home| home.is_absolute() && *home != Path::new("/"));
    CACHES
        .iter()
        .filter_map(|(variable, below)| {
            value(variable)
                .filter(|path| path.is_absolute())
                .or_else(|| Some(home.as_ref()?.join(below)))
        })
        .collect()
}

/// Builds the Landlock policy of a command.
///
/// `workspace` is what the command works on; `extra` are the host's own writable paths; `stores` are directories that
/// must stay out of reach, whatever else is allowed. Paths that do not exist are left out when the command starts.
#[must_use]
pub fn landlock(
    workspace: &Path,
    env: &[(OsString, OsString)],
    extra: &[PathBuf],
    stores: &[PathBuf],
    required: bool,
) -> Files {
    let mut wanted = vec![workspace.to_owned()];
    wanted.extend(DEVICES.iter().chain(TEMPORARY).map(PathBuf::from));
    wanted.extend(
        env.iter()
            .filter(|(name, _)| name == "TMPDIR")
            .map(|(_, value)| PathBuf::from(value)),
    );
    wanted.extend(caches(env));
    wanted.extend(extra.iter().cloned());
    let real = |path: &PathBuf| fs::canonicalize(path).unwrap_or_else(|_| path.clone());
    let stores: Vec<PathBuf> = stores.iter().map(real).collect();
    let mut writable = Vec::new();
    for path in wanted.iter().filter(|path| path.is_absolute()).map(real) {
        allow(path, &stores, &mut writable);
    }
    writable.sort();
    writable.dedup();
    Files::Landlock { writable, required }
}

/// Adds a path, or what in it does not lead to a store.
fn allow(path: PathBuf, stores: &[PathBuf], writable: &mut Vec<PathBuf>) {
    if stores.iter().any(|store| path.starts_with(store)) {
        return;
    }
    if !stores.iter().any(|store| store.starts_with(&path)) {
        writable.push(path);
        return;
    }
    let Ok(entries) = fs::read_dir(&path) else { return };
    for entry in entries.flatten() {
        // A symlink would be followed to wherever it leads, which was not what was allowed.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            allow(entry.path(), stores, writable);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_inside_an_allowed_directory_is_carved_out() {
        let dir = tempfile::tempdir().expect("tempdir");
        let root = fs::canonicalize(dir.path()).expect("real");
        for sub in ["work/a", "work/state/store/objects", "work/state/other", "home/.cargo"] {
            fs::create_dir_all(root.join(sub)).expect("mkdir");
        }
        std::os::unix::fs::symlink(root.join("work/state/store"), root.join("work/link")).expect("symlink");
        let env = vec![(OsString::from("HOME"), root.join("home").into_os_string())];
        let policy = landlock(
            &root.join("work"),
            &env,
            &[root.join("work/link")],
            &[root.join("work/state/store")],
            true,
        );
        let Files::Landlock {
            writable,
            required: true,
        } = policy
        else {
            panic!("{policy:?}")
        };
        let below: Vec<_> = writable
            .iter()
            .filter_map(|path| path.strip_prefix(&root).ok())
            .collect();
        assert!(
            below.contains(&Path::new("work/a")) && below.contains(&Path::new("work/state/other")),
            "{below:?}"
        );
        assert!(below.contains(&Path::new("home/.cargo")), "{below:?}");
        let store = root.join("work/state/store");
        assert!(
            !writable
                .iter()
                .any(|path| store.starts_with(path) || path.starts_with(&store)),
            "{writable:?}"
        );
        assert!(writable.contains(&PathBuf::from("/dev/null")));
    }
}
