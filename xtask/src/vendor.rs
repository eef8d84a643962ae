//! `cargo xtask vendor`: an engine with the contracts as a workspace of its own.

use std::path::Path;

use anyhow::{Context, Result, bail};
use cargo_metadata::MetadataCommand;
use ignore::WalkBuilder;
use toml_edit::{Array, DocumentMut, value};

use crate::cargo::{cargo, run, workspace};
use crate::conformance::ENGINES;

/// Copies an engine and the contracts into `to`, which must be absent or empty.
pub fn vendor(engine: &str, to: &Path) -> Result<()> {
    copy(engine, to)?;
    println!(
        "{engine} and zero-contracts are in {}, a workspace of their own: try `cargo test` there",
        to.display()
    );
    Ok(())
}

fn copy(engine: &str, to: &Path) -> Result<()> {
    if !ENGINES.contains(&engine) {
        bail!("`{engine}` is not an engine; the engines are {}", ENGINES.join(", "));
    }
    if to.exists() && fs_err::read_dir(to)?.next().is_some() {
        bail!("{} is not empty", to.display());
    }
    let from = workspace();
    for house in ["contracts", engine] {
        copy_tree(&from.join(house), &to.join(house))?;
    }
    for file in ["LICENSE", "rustfmt.toml", "clippy.toml", "Cargo.lock"] {
        if from.join(file).exists() {
            fs_err::copy(from.join(file), to.join(file))?;
        }
    }
    let mut manifest: DocumentMut = fs_err::read_to_string(from.join("Cargo.toml"))?.parse()?;
    manifest["workspace"]["members"] = value(["contracts", engine].into_iter().collect::<Array>());
    let dependencies = manifest["workspace"]["dependencies"]
        .as_table_mut()
        .context("no workspace.dependencies")?;
    let other_houses: Vec<String> = dependencies
        .iter()
        .filter(|(_, entry)| {
            entry
                .get("path")
                .and_then(|p| p.as_str())
                .is_some_and(|p| p != "contracts" && p != engine)
        })
        .map(|(name, _)| name.to_owned())
        .collect();
    for name in other_houses {
        dependencies.remove(&name);
    }
    fs_err::write(to.join("Cargo.toml"), manifest.to_string())?;
    Ok(())
}

/// Vendors an engine into a temporary directory, and builds, tests and runs its examples there.
pub fn prove(engine: &str) -> Result<()> {
    let directory = tempfile::tempdir()?;
    copy(engine, directory.path())?;
    let target = workspace().join("target").join("vendored");
    let inside = |arguments: &[&str]| {
        let mut command = cargo(arguments);
        command.current_dir(directory.path()).env("CARGO_TARGET_DIR", &target);
        command
    };
    run(&mut inside(&["test", "--package", engine, "--quiet"]))?;
    let metadata = MetadataCommand::new()
        .current_dir(directory.path())
        .exec()
        .context("reading the vendored workspace")?;
    let packages = metadata.workspace_packages();
    let examples = packages
        .iter()
        .filter(|package| package.name.as_str() == engine)
        .flat_map(|package| &package.targets)
        // One that needs a feature is a tool rather than an example.
        .filter(|target| target.is_example() && target.required_features.is_empty());
    for example in examples {
        run(&mut inside(&[
            "run",
            "--quiet",
            "--package",
            engine,
            "--example",
            &example.name,
        ]))?;
    }
    Ok(())
}

/// Copies what git does not ignore.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    for entry in WalkBuilder::new(from).hidden(false).build() {
        let entry = entry?;
        let below = to.join(entry.path().strip_prefix(from)?);
        if entry.file_type().is_some_and(|kind| kind.is_dir()) {
            fs_err::create_dir_all(&below)?;
        } else {
            fs_err::copy(entry.path(), &below)?;
        }
    }
    Ok(())
}
