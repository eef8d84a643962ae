//! Two cells on a real source tree: one that changes it for good, and one that fails and leaves no trace.
//!
//! Usage: `demo DIRECTORY`, with a copy of a Rust crate that defines `is_escapeable_character`. `cargo xtask demo` makes
//! such a copy.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;
use zerostack::contracts::ZeroKernelResponse;
use zerostack::contracts::response::Outcome;
use zerostack::{CellOptions, KernelConfig, StoreLocation, ZeroKernel};

/// Path, kind with mode, and content of everything in a tree.
type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .ok_or("usage: demo DIRECTORY")?;
    let kernel = ZeroKernel::open(KernelConfig {
        store: StoreLocation::Transient,
        ..KernelConfig::new(&root)
    })?;

    let input = BTreeMap::from([
        ("wrong".to_owned(), json!("is_escapeable_character")),
        ("right".to_owned(), json!("is_escapable_character")),
    ]);
    let before = tree(&root)?;
    println!(
        "A workspace of {} files and directories. The first cell corrects a misspelt name:\n",
        before.len()
    );
    let response = show(
        &kernel,
        include_str!("demo/rename.js"),
        CellOptions {
            input: Some(input),
            ..CellOptions::default()
        },
    );
    if response.outcome != Outcome::Completed {
        return Err("the first cell did not complete".into());
    }
    let after = tree(&root)?;
    let changed: Vec<_> = before
        .iter()
        .filter(|(path, was)| after.get(*path) != Some(was))
        .map(|(path, _)| path)
        .collect();
    println!("Files that differ now: {changed:?}\n");

    println!("The second cell changes the tree in many ways and then throws:\n");
    let response = show(&kernel, include_str!("demo/throw.js"), CellOptions::default());
    if response.outcome != Outcome::Failed {
        return Err("the second cell did not fail".into());
    }
    if tree(&root)? != after {
        return Err("the failed cell left a trace".into());
    }
    println!(
        "The tree is what it was before that cell: byte for byte, mode for mode, all {} entries.",
        after.len()
    );
    Ok(())
}

fn show(kernel: &ZeroKernel, source: &str, options: CellOptions) -> ZeroKernelResponse {
    for line in source.lines() {
        println!("    {line}");
    }
    let response = kernel.execute_cell_with(source, options);
    println!("\n  outcome      {:?}", response.outcome);
    if let Some(error) = &response.error {
        let place = error
            .location
            .map(|at| format!(" at {}:{}", at.line, at.column))
            .unwrap_or_default();
        println!("  error        {}{place}: {}", error.kind, error.detail);
    }
    if let Some(value) = &response.value {
        let value = serde_json::to_string_pretty(value).unwrap_or_default();
        println!("  value        {}", value.replace('\n', "\n               "));
    }
    let effects = &response.effects;
    println!(
        "  effects      {}, {} path(s), capture tier {}",
        word(&effects.disposition),
        effects.receipts,
        word(&effects.capture)
    );
    let ledger = &response.ledger;
    let calls: Vec<_> = ledger
        .calls
        .iter()
        .map(|(operation, n)| format!("{n} {operation}"))
        .collect();
    println!("  calls        {}", calls.join(", "));
    println!(
        "  processes    {} started, {} proven gone",
        ledger.processes.started, ledger.processes.reaped
    );
    println!(
        "  time         {:.0} ms, of which {:.0} ms CPU in the frame",
        ledger.wall_ms, ledger.cpu_ms
    );
    if let Some(event) = response.event {
        println!("  event        {event}\n");
    }
    response
}

/// The word a value has in the JSON of a response.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Reads everything below a directory, following no symlink.
fn tree(root: &Path) -> Result<Tree, Box<dyn Error>> {
    fn visit(directory: &Path, root: &Path, found: &mut Tree) -> Result<(), Box<dyn Error>> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let metadata = fs::symlink_metadata(&path)?;
            let content = if metadata.is_symlink() {
                fs::read_link(&path)?.as_os_str().as_bytes().to_vec()
            } else if metadata.is_file() {
                fs::read(&path)?
            } else {
                Vec::new()
            };
            found.insert(
                path.strip_prefix(root)?.to_owned(),
                (metadata.permissions().mode(), content),
            );
            if metadata.is_dir() {
                visit(&path, root, found)?;
            }
        }
        Ok(())
    }
    let mut found = Tree::new();
    visit(root, root, &mut found)?;
    Ok(found)
}
