//! `cargo xtask test`: everything that must pass, in one command.

use anyhow::Result;

use crate::cargo::{cargo, has_nextest, run};

/// Builds what tests start, then runs the documentation's examples and all tests; further arguments go to the runner.
pub fn test(arguments: &[String]) -> Result<()> {
    run(&mut cargo(&["build", "--package", "zero-supervisor", "--bins"]))?;
    if arguments.is_empty() {
        run(&mut cargo(&["test", "--workspace", "--doc", "--quiet"]))?;
    }
    let runner: &[&str] = if has_nextest() {
        &["nextest", "run", "--workspace"]
    } else {
        &["test", "--workspace", "--lib", "--bins", "--tests"]
    };
    run(cargo(runner).args(arguments))
}
