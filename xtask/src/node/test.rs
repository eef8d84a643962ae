//! The tests of the npm package: `node --test` on a quickly built addon.

use std::process::Command;

use anyhow::Result;

use super::{Profile, build, npm, package, place_beside, require_node, target};
use crate::cargo::{cargo, run};

/// Builds, installs what the tests need (by the lockfile), and runs them.
pub fn test() -> Result<()> {
    require_node()?;
    place_beside(&build(Profile::Dev)?)?;
    run(&mut cargo(&["build", "--quiet", "--package", "zero-kernel"]))?;
    let package = package();
    let installed = package.join("node_modules/.package-lock.json");
    let stale = |path: &std::path::Path| fs_err::metadata(path).and_then(|data| data.modified()).ok();
    if stale(&installed) < stale(&package.join("package-lock.json")) {
        run(npm(&["ci", "--ignore-scripts"]).current_dir(&package))?;
    }
    run(Command::new("node")
        .args(["--test", "--test-reporter", "spec", "test/"])
        .env("ZEROSTACK_XTASK", std::env::current_exe()?)
        .env("ZERO_KERNEL_CLI", target()?.join("debug/zero-kernel"))
        .current_dir(&package))
}
