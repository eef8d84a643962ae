//! `THIRD_PARTY.md`: whose work is linked into what the project ships, and under which licence.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

use crate::cargo::workspace;

const FILE: &str = "THIRD_PARTY.md";

/// The packages whose binaries reach a user.
const SHIPPED: [&str; 3] = ["zero-kernel", "zero-supervisor", "zero-kernel-node"];

/// Everything that is linked into the given packages, by name and version.
fn linked(metadata: &Metadata, roots: &[&str]) -> Result<BTreeSet<PackageId>> {
    let resolve = metadata.resolve.as_ref().context("cargo gave no resolved graph")?;
    let nodes: BTreeMap<_, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let mut open: Vec<&PackageId> = metadata
        .packages
        .iter()
        .filter(|package| roots.contains(&package.name.as_str()))
        .map(|package| &package.id)
        .collect();
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !found.insert(id.clone()) {
            continue;
        }
        let Some(node) = nodes.get(id) else { continue };
        for dependency in &node.deps {
            if dependency
                .dep_kinds
                .iter()
                .any(|kind| kind.kind == DependencyKind::Normal)
            {
                open.push(&dependency.pkg);
            }
        }
    }
    Ok(found)
}

fn generate() -> Result<String> {
    let metadata = MetadataCommand::new()
        .current_dir(workspace())
        .other_options(["--filter-platform".into(), "x86_64-unknown-linux-gnu".into()])
        .exec()
        .context("reading the dependency graph")?;
    let linked = linked(&metadata, &SHIPPED)?;
    let mut rows: Vec<(String, String, String)> = Vec::new();
    for package in metadata.packages.iter().filter(|package| linked.contains(&package.id)) {
        if package.source.is_none() {
            continue; // A house of this workspace.
        }
        let licence = package.license.clone().unwrap_or_else(|| "see its source".into());
        rows.push((package.name.to_string(), package.version.to_string(), licence));
    }
    rows.sort();
    let mut text = String::from(
        "# Third-party notices\n\n\
         What is linked into the programs and the addon that this project ships, with its licence (SPDX). Each crate's own text is in its \
         source, which the registry keeps under the name and version given here. `cargo xtask notices` writes this file.\n\n\
         V8 and what its library holds are listed by hand in [third_party/v8/README.md](third_party/v8/README.md).\n\n\
         | crate | version | licence |\n| --- | --- | --- |\n",
    );
    for (name, version, licence) in rows {
        // Writing to a string does not fail.
        let _ = writeln!(text, "| {name} | {version} | {licence} |");
    }
    Ok(text)
}

/// Writes the file anew.
pub fn write() -> Result<()> {
    Ok(fs_err::write(workspace().join(FILE), generate()?)?)
}

/// Fails if the file does not say what is linked now.
pub fn check() -> Result<()> {
    let kept = fs_err::read_to_string(workspace().join(FILE))?;
    if kept != generate()? {
        bail!("{FILE} does not say what is linked now: run `cargo xtask notices`");
    }
    Ok(())
}
