//! `cargo xtask conformance`: rules about the whole workspace that no lint can check.

pub mod forms;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use cargo_metadata::{Metadata, MetadataCommand, Package, PackageId};

use crate::cargo::{cargo, has_nextest, run, workspace};
use crate::{notices, vendor};

/// The engines, which may depend on the contracts and on nothing else of the workspace.
pub const ENGINES: [&str; 3] = ["fszero", "graphzero", "tokenzero"];

/// Who may compose engines: the hub, and what checks and measures them (`zero-conformance` in its tests alone).
const COMPOSERS: [&str; 4] = ["zerostack", "zero-tests", "zero-conformance", "xtask"];

/// Packages that mean V8.
const V8: [&str; 2] = ["v8", "deno_core"];

/// Only these may need V8 to build.
const V8_HOUSES: [&str; 5] = [
    "zerostack",
    "zero-frame-snapshot",
    "zero-kernel",
    "zero-kernel-node",
    "zero-tests",
];

/// Checks every rule and prints one line for each; with `prove_vendoring` each engine is also vendored and tested alone.
pub fn conformance(prove_vendoring: bool) -> Result<()> {
    let metadata = MetadataCommand::new()
        .current_dir(workspace())
        .exec()
        .context("reading the dependency graph")?;
    let mut results: Vec<(String, Vec<String>)> = vec![
        (
            "engines depend on the contracts alone".into(),
            engines_stand_alone(&metadata),
        ),
        (
            "the contracts depend on no house".into(),
            contracts_stand_alone(&metadata),
        ),
        (
            "only the hub composes the engines".into(),
            only_the_hub_composes(&metadata),
        ),
        ("V8 stays in the hub".into(), v8_stays_in_the_hub(&metadata)?),
        ("every dependency has its reason".into(), reasons(&metadata)?),
    ];
    results.push((
        "the third-party notices say what is linked".into(),
        notices::check().err().map(|e| e.to_string()).into_iter().collect(),
    ));
    results.push((
        "the forms of the contract are those of its version".into(),
        forms::check().unwrap_or_else(|e| vec![format!("{e:#}")]),
    ));
    let runner: &[&str] = if has_nextest() {
        &["nextest", "run", "--package"]
    } else {
        &["test", "--package"]
    };
    let round_trips = run(cargo(runner).args(["zero-contracts"])).err().map(|e| e.to_string());
    results.push((
        "contracts round-trip in both forms".into(),
        round_trips.into_iter().collect(),
    ));
    println!();
    let suites = run(cargo(&[
        "run",
        "--quiet",
        "--package",
        "zero-conformance",
        "--example",
        "table",
        "--",
    ])
    .arg("--json")
    .arg(metadata.target_directory.join("conformance.json")))
    .err()
    .map(|e| e.to_string());
    results.push((
        "engines keep their contracts, and every seeded defect is caught (conformance.json in the target directory)"
            .into(),
        suites.into_iter().collect(),
    ));
    if prove_vendoring {
        for engine in ENGINES {
            let failed = vendor::prove(engine).err().map(|e| format!("{e:#}"));
            results.push((
                format!("{engine} builds and passes its tests alone"),
                failed.into_iter().collect(),
            ));
        }
    }
    println!();
    for (rule, breaches) in &results {
        println!("{:4} {rule}", if breaches.is_empty() { "ok" } else { "FAIL" });
        for breach in breaches {
            println!("     {breach}");
        }
    }
    match results.iter().filter(|(_, breaches)| !breaches.is_empty()).count() {
        0 => Ok(()),
        n => bail!("{n} rule(s) broken"),
    }
}

fn houses(metadata: &Metadata) -> BTreeMap<&str, &Package> {
    metadata
        .workspace_packages()
        .into_iter()
        .map(|package| (package.name.as_str(), package))
        .collect()
}

/// Dependencies of any kind on packages of this workspace.
fn house_dependencies<'a>(houses: &BTreeMap<&str, &'a Package>, name: &str) -> BTreeSet<&'a str> {
    houses
        .get(name)
        .map(|package| {
            package
                .dependencies
                .iter()
                .map(|d| d.name.as_str())
                .filter(|d| houses.contains_key(d))
                .collect()
        })
        .unwrap_or_default()
}

fn engines_stand_alone(metadata: &Metadata) -> Vec<String> {
    let houses = houses(metadata);
    ENGINES
        .iter()
        .flat_map(|engine| {
            house_dependencies(&houses, engine)
                .into_iter()
                .map(move |d| (engine, d))
        })
        .filter(|(_, dependency)| *dependency != "zero-contracts")
        .map(|(engine, dependency)| format!("{engine} depends on {dependency}"))
        .collect()
}

fn contracts_stand_alone(metadata: &Metadata) -> Vec<String> {
    house_dependencies(&houses(metadata), "zero-contracts")
        .into_iter()
        .map(|dependency| format!("zero-contracts depends on {dependency}"))
        .collect()
}

fn only_the_hub_composes(metadata: &Metadata) -> Vec<String> {
    let houses = houses(metadata);
    houses
        .keys()
        .filter(|name| !COMPOSERS.contains(name))
        .flat_map(|name| house_dependencies(&houses, name).into_iter().map(move |d| (name, d)))
        .filter(|(_, dependency)| ENGINES.contains(dependency))
        .map(|(name, dependency)| format!("{name} depends on {dependency}"))
        .collect()
}

fn v8_stays_in_the_hub(metadata: &Metadata) -> Result<Vec<String>> {
    let resolve = metadata.resolve.as_ref().context("cargo gave no resolved graph")?;
    let edges: BTreeMap<&PackageId, Vec<&PackageId>> = resolve
        .nodes
        .iter()
        .map(|node| (&node.id, node.deps.iter().map(|dep| &dep.pkg).collect()))
        .collect();
    let names: BTreeMap<&PackageId, &str> = metadata.packages.iter().map(|p| (&p.id, p.name.as_str())).collect();
    let mut breaches = Vec::new();
    for (name, package) in houses(metadata) {
        if V8_HOUSES.contains(&name) {
            continue;
        }
        let mut seen = BTreeSet::new();
        let mut open = vec![&package.id];
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                open.extend(edges.get(id).into_iter().flatten().copied());
            }
        }
        breaches.extend(
            seen.iter()
                .filter_map(|id| names.get(id))
                .filter(|found| V8.contains(found))
                .map(|found| format!("{name} pulls in {found}")),
        );
    }
    Ok(breaches)
}

/// Each dependency of a house, but those on other houses and the plainest, has a comment that says what it is for.
fn reasons(metadata: &Metadata) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for (name, package) in houses(metadata) {
        let manifest = fs_err::read_to_string(Path::new(&package.manifest_path))?;
        let mut explained_above = false;
        let mut inside = false;
        for line in manifest.lines() {
            if line.starts_with('[') {
                inside = line == "[dependencies]";
            }
            let entry = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if line.starts_with('#') {
                explained_above = true;
            } else if line.is_empty() || line.starts_with('[') {
                explained_above = false;
            } else if inside && !explained_above && !line.contains('#') && !is_plain(entry) {
                breaches.push(format!("{name}: `{entry}` has no reason beside it"));
            }
        }
    }
    Ok(breaches)
}

fn is_plain(dependency: &str) -> bool {
    let own = dependency.starts_with("zero") || ENGINES.contains(&dependency);
    // A grammar is what its name says.
    own || dependency.starts_with("tree-sitter-")
        || matches!(
            dependency,
            "serde" | "serde_json" | "postcard" | "thiserror" | "}" | "]" | ""
        )
        || dependency.starts_with('"')
}
