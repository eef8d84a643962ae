//! Finding the supervisor's program.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// Environment variable that names the program.
pub const VARIABLE: &str = "ZEROSTACK_SUPERVISOR";

/// File name of the program.
pub const NAME: &str = "zero-supervisor";

/// Finds `zero-supervisor`: the explicit path if given, else the one in [`VARIABLE`], else beside the current executable,
/// else one directory above it (where cargo puts programs, above the tests). An addon passes the path beside itself.
///
/// A path that was named (explicitly or by the variable) is the only one looked at.
///
/// # Errors
/// [`Error::NoSupervisor`] with every path that was tried.
pub fn locate(explicit: Option<&Path>) -> Result<PathBuf, Error> {
    let variable = std::env::var_os(VARIABLE)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    search(explicit, variable, std::env::current_exe().ok())
}

fn search(explicit: Option<&Path>, variable: Option<PathBuf>, executable: Option<PathBuf>) -> Result<PathBuf, Error> {
    let looked = match explicit.map(Path::to_owned).or(variable) {
        Some(named) => vec![named],
        None => {
            let beside = executable.as_deref().and_then(Path::parent);
            let above = beside.and_then(Path::parent);
            [beside, above]
                .into_iter()
                .flatten()
                .map(|dir| dir.join(NAME))
                .collect()
        }
    };
    match looked.iter().find(|path| is_program(path)) {
        Some(path) => Ok(std::path::absolute(path).unwrap_or_else(|_| path.clone())),
        None => Err(Error::NoSupervisor { looked }),
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn program(path: &Path) {
        fs::write(path, "").expect("write");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("chmod");
    }

    #[test]
    fn order_is_explicit_variable_beside_above() {
        let dir = tempfile::tempdir().expect("tempdir");
        let deps = dir.path().join("deps");
        fs::create_dir(&deps).expect("mkdir");
        let exe = deps.join("test-abc");
        let above = dir.path().join(NAME);
        program(&above);
        assert_eq!(search(None, None, Some(exe.clone())).expect("above"), above);
        let beside = deps.join(NAME);
        fs::write(&beside, "").expect("write");
        assert_eq!(search(None, None, Some(exe.clone())).expect("not executable"), above);
        program(&beside);
        assert_eq!(search(None, None, Some(exe.clone())).expect("beside"), beside);
        let other = dir.path().join("other");
        program(&other);
        assert_eq!(
            search(None, Some(other.clone()), Some(exe.clone())).expect("variable"),
            other
        );
        assert_eq!(
            search(Some(&above), Some(other), Some(exe.clone())).expect("explicit"),
            above
        );
        match search(Some(&dir.path().join("absent")), None, Some(exe)) {
            Err(Error::NoSupervisor { looked }) => assert_eq!(looked, [dir.path().join("absent")]),
            found => panic!("{found:?}"),
        }
    }
}
