//! Runs cargo in this workspace.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The workspace's directory.
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Returns a cargo command in the workspace.
pub fn cargo(arguments: &[&str]) -> Command {
    // Cargo names itself to the programs it runs.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(workspace());
    command
}

/// Runs a command to its end and fails if it does.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.status().with_context(|| format!("could not start {shown}"))?;
    if !status.success() {
        bail!("{shown}: {status}");
    }
    Ok(())
}

/// Runs a command and returns its standard output; its standard error is shown.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("could not start {shown}"))?;
    if !output.status.success() {
        bail!("{shown}: {}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Builds the supervisor as it is shipped: linked statically, for every command waits until it has started, and a dynamic
/// linker takes half a millisecond of that.
pub fn build_supervisor(profile: &str) -> Result<()> {
    run(&mut cargo(&[
        "rustc",
        "--quiet",
        "--profile",
        profile,
        "--package",
        "zero-supervisor",
        "--bin",
        "zero-supervisor",
        "--",
        "-C",
        "target-feature=+crt-static",
    ]))
}

/// Tells whether cargo-nextest is installed.
pub fn has_nextest() -> bool {
    cargo(&["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn shown(command: &Command) -> String {
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    format!("{} {}", command.get_program().to_string_lossy(), words.join(" "))
}
