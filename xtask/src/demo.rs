//! `cargo xtask demo`: real cells on a copy of a published crate.

use std::process::Command;

use anyhow::{Context, Result};
use cargo_metadata::MetadataCommand;

use crate::cargo::{cargo, run, workspace};
use crate::vendor::copy_tree;

/// A crate of some thirty files without dependencies, which is among this workspace's own.
const CRATE: &str = "regex-syntax";

/// Builds the kernel and runs the demo.
pub fn demo() -> Result<()> {
    let metadata = MetadataCommand::new()
        .current_dir(workspace())
        .exec()
        .context("reading the dependency graph")?;
    let package = metadata
        .packages
        .iter()
        .find(|package| package.name.as_str() == CRATE)
        .with_context(|| {
            format!("{CRATE} is not among the dependencies any more: choose another crate for the demo")
        })?;
    let sources = package
        .manifest_path
        .parent()
        .context("a manifest lies in a directory")?;
    let directory = tempfile::tempdir()?;
    let root = directory.path().join(CRATE);
    copy_tree(sources.as_std_path(), &root)?;
    println!("A copy of {CRATE} {}.", package.version);
    // The whole workspace at once, as the tests build it: packages by themselves would have other features of their
    // dependencies, and whoever went on to the command line or the tests would build V8's bindings once more.
    run(&mut cargo(&["build", "--workspace", "--bins", "--example", "demo"]))?;
    let demo = metadata.target_directory.join("debug").join("examples").join("demo");
    run(Command::new(demo.as_std_path()).arg(&root))
}
