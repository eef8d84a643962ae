//! `cargo xtask bench node`: what the package costs a Node program, measured on the addon as it is shipped.

use std::process::Command;

use anyhow::Result;

use super::{addon, node, package, require_node, target};
use crate::cargo::output;

/// Builds and packs as for a release, measures, and returns the rows. Every sample is kept in `target/node/bench.json`.
pub fn bench() -> Result<String> {
    require_node()?;
    node()?;
    let staged = target()?.join("node");
    let artifact = staged.join("bench.json");
    let printed = output(
        Command::new("node")
            .arg(package().join("bench/node.mjs"))
            .arg(&artifact)
            .env("ZERO_KERNEL_NATIVE_ADDON", staged.join("native").join(addon())),
    )?;
    println!("every sample: {}", artifact.display());
    Ok(printed)
}
