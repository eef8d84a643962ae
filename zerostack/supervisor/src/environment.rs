//! The environment of a command: explicit, never the host's as a whole.
//!
//! A host's environment holds secrets (tokens, keys) and accidents. A command gets the variables named in [`ALLOWED`], those
//! whose name begins with one of [`ALLOWED_PREFIXES`], and whatever the caller adds.

use std::ffi::{OsStr, OsString};

/// Variables of the host that a command sees: who and where the user is, how to talk to the terminal and in which language,
/// where programs and tool chains are.
pub const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TMPDIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "JAVA_HOME",
    "MAVEN_OPTS",
    "GRADLE_USER_HOME",
    "NVM_DIR",
    "NVM_BIN",
    "VOLTA_HOME",
    "PNPM_HOME",
    "BUN_INSTALL",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "RBENV_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_PROFILES",
    "NIX_PATH",
    "NIX_SSL_CERT_FILE",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
];

/// Beginnings of names that are allowed too: locale categories and the XDG base directories.
pub const ALLOWED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Variables with an allowed prefix that stay out: they lead to the user's desktop session and its daemons.
const DENIED: &[&str] = &["XDG_RUNTIME_DIR", "XDG_SESSION_ID", "XDG_SEAT", "XDG_VTNR"];

/// Used when the host itself has no `PATH`.
pub const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The allow-listed part of the calling process's environment, with a `PATH` in any case.
#[must_use]
pub fn inherited() -> Vec<(OsString, OsString)> {
    filter(std::env::vars_os())
}

/// The allow-listed part of an environment, with a `PATH` in any case.
pub fn filter(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let mut kept: Vec<_> = vars.into_iter().filter(|(name, _)| is_allowed(name)).collect();
    if !kept.iter().any(|(name, _)| name == "PATH") {
        kept.push(("PATH".into(), DEFAULT_PATH.into()));
    }
    kept
}

/// Whether a command inherits the variable of this name.
#[must_use]
pub fn is_allowed(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        ALLOWED.contains(&name)
            || (ALLOWED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && !DENIED.contains(&name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_out_and_a_path_is_always_there() {
        let host = [
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("LC_ALL", "C"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
            ("HOME", "/h"),
        ]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let kept = filter(host);
        let names: Vec<_> = kept.iter().map(|(name, _)| name.to_str().expect("utf-8")).collect();
        assert_eq!(names, ["LC_ALL", "HOME", "PATH"]);
    }
}
