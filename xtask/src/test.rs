//! `cargo xtask test`: everything that must pass, in one command.

use anyhow::Result;

use crate::cargo::{cargo, has_nextest, run};
use crate::node;

/// Builds what tests start, then runs the documentation's examples, the tests of the npm package and all others; further
/// arguments go to the runner of the last, which is then the only one.
pub fn test(arguments: &[String]) -> Result<()> {
    run(&mut cargo(&["build", "--package", "zero-supervisor", "--bins"]))?;
    if arguments.is_empty() {
        run(&mut cargo(&["test", "--workspace", "--doc", "--quiet"]))?;
        node::test::test()?;
    }
    let runner: &[&str] = if has_nextest() {
        &["nextest", "run", "--workspace"]
    } else {
        &["test", "--workspace", "--lib", "--bins", "--tests"]
    };
    run(cargo(runner).args(arguments))
}
