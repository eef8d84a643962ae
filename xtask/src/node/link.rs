//! A linker that exports what it is told to.
//!
//! From a `cdylib` rustc exports every `no_mangle` function of every dependency, which here are hundreds of V8's and of its
//! relatives, by a version script that it writes itself and whose exact names no other script can take back. So this
//! program stands in for the linker, cuts that script down, and hands on to the real one.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Environment variable that makes this program a linker; its value names the one exported symbol.
pub const EXPORTS: &str = "ZEROSTACK_LINK_EXPORTS";

/// How rustc names its version script to the compiler driver.
const SCRIPT: &str = "-Wl,--version-script=";

/// Does the linker's work if this process was started as one, and tells whether it was.
pub fn stand_in_for_the_linker() -> Option<Result<()>> {
    let symbol = std::env::var(EXPORTS).ok()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    Some(link(&symbol, &arguments))
}

fn link(symbol: &str, arguments: &[String]) -> Result<()> {
    let Some(script) = arguments.iter().find_map(|argument| argument.strip_prefix(SCRIPT)) else {
        bail!("rustc gave the linker no version script: the exports cannot be cut down");
    };
    fs_err::write(Path::new(script), format!("{{ global: {symbol}; local: *; }};\n"))?;
    let status = Command::new("cc")
        .args(arguments)
        .status()
        .context("could not start cc")?;
    if !status.success() {
        bail!("cc: {status}");
    }
    Ok(())
}
