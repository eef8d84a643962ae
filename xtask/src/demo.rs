//! `cargo xtask demo`: real cells on a copy of a published crate.

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
    run(&mut cargo(&["build", "--package", "zero-supervisor", "--bins"]))?;
    run(cargo(&["run", "--quiet", "--package", "zerostack", "--example", "demo", "--"]).arg(&root))
}
