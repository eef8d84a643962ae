//! Where the programs under test lie, also for an ordinary user who cannot enter the target directory.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name in the environment of a process started by [`as_ordinary_user`]: the directory with the copies.
const COPIES: &str = "ZEROSTACK_TEST_PROGRAMS";

fn program(built: &str) -> PathBuf {
    let built = Path::new(built);
    match (std::env::var_os(COPIES), built.file_name()) {
        (Some(copies), Some(name)) => Path::new(&copies).join(name),
        _ => built.to_owned(),
    }
}

/// The supervisor.
pub fn supervisor() -> PathBuf {
    program(env!("CARGO_BIN_EXE_zero-supervisor"))
}

/// The hostile commands.
pub fn adversary() -> PathBuf {
    program(env!("CARGO_BIN_EXE_zero-adversary"))
}

/// This test program, to be started by any user: itself, or copies of all programs where others may not enter its directory.
pub fn as_ordinary_user() -> Command {
    let own = std::env::current_exe().expect("own program");
    let enterable = |path: &Path| fs::metadata(path).is_ok_and(|data| data.mode() & 0o001 != 0);
    if own.ancestors().skip(1).all(enterable) {
        return Command::new(own);
    }
    let copies = copies(&own);
    let mut command = Command::new(copies.join("it"));
    command.env(COPIES, copies);
    command
}

/// Copies the programs once for each build of them; whoever comes second finds them.
fn copies(own: &Path) -> PathBuf {
    let data = fs::metadata(own).expect("own program");
    let key = format!(
        "zero-supervisor-tests-{:x}-{:x}-{:x}",
        data.ino(),
        data.mtime(),
        data.mtime_nsec()
    );
    let done = std::env::temp_dir().join(key);
    if done.exists() {
        return done;
    }
    let making = done.with_extension(std::process::id().to_string());
    fs::DirBuilder::new().mode(0o755).create(&making).expect("a directory");
    let name = |path: &Path| path.file_name().expect("a program has a name").to_owned();
    let (supervisor, adversary) = (supervisor(), adversary());
    for (from, name) in [
        (own, "it".into()),
        (&supervisor, name(&supervisor)),
        (&adversary, name(&adversary)),
    ] {
        let to = making.join(name);
        fs::copy(from, &to).expect("a copy");
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    // Lost to another process that made the same: its copies are as good.
    if fs::rename(&making, &done).is_err() {
        fs::remove_dir_all(&making).expect("cleaning up");
    }
    done
}
