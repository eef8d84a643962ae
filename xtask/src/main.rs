//! Every chore of the workspace, in Rust: `cargo xtask --help`.

mod bench;
mod cargo;
mod conformance;
mod demo;
mod node;
mod notices;
mod setup;
mod soak;
mod test;
mod vendor;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Chores of the ZeroStack workspace.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Make sure that V8 is where cargo finds it; every other chore does this first.
    Setup,
    /// Run real cells on a copy of a published crate.
    Demo,
    /// Run every test; arguments go to the test runner.
    Test {
        /// For cargo-nextest, or for cargo test where that is not installed.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Check the rules of the workspace.
    Conformance {
        /// Also vendor each engine into a workspace of its own and pass its tests there.
        #[arg(long)]
        vendor: bool,
        /// Write the forms of the contract, of a version that has none yet, and check nothing.
        #[arg(long, conflicts_with = "vendor")]
        bless: bool,
    },
    /// Copy an engine with the contracts into a workspace of its own.
    Vendor {
        /// fszero, graphzero or tokenzero.
        engine: String,
        /// An absent or empty directory.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Write down whose work is linked into what is shipped.
    Notices,
    /// Build the addon for Node, and stage and pack the npm packages.
    Node {
        /// Build quickly and put the addon beside the package's files instead: for work on it.
        #[arg(long, conflicts_with = "types")]
        dev: bool,
        /// Generate `index.d.ts`, and nothing else.
        #[arg(long)]
        types: bool,
        /// Stage and pack what `--dev` put beside the package's files, into this directory.
        #[arg(long, value_name = "DIR", conflicts_with_all = ["dev", "types"])]
        staged: Option<PathBuf>,
    },
    /// Measure against a floor or peer of the same run.
    Bench {
        /// all, frame, cell, fs, run, graph, tokens or node.
        #[arg(default_value = "all")]
        name: String,
        /// Write the rows here, too.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Make the report in `benchmarks/` of rows that `--json` wrote, instead of measuring.
        #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "json")]
        report: Vec<PathBuf>,
    },
    /// Score structure against what compiler-grade indexers know: `--truth FILE --source DIR`, repeated.
    Truth {
        /// For the scorer.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run the slow sweeps.
    Soak {
        /// all, frame, cell, shell, outbox, fs, process, graph or tokens.
        #[arg(default_value = "all")]
        name: String,
    },
}

fn main() -> ExitCode {
    let done = node::stand_in_for_the_linker().unwrap_or_else(|| work(Cli::parse().chore));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn work(chore: Chore) -> Result<()> {
    if !matches!(chore, Chore::Vendor { .. } | Chore::Truth { .. } | Chore::Notices) {
        setup::run()?;
    }
    match chore {
        Chore::Setup => Ok(()),
        Chore::Notices => notices::write(),
        Chore::Demo => demo::demo(),
        Chore::Test { arguments } => test::test(&arguments),
        Chore::Conformance { bless: true, .. } => conformance::forms::bless(),
        Chore::Conformance { vendor, .. } => conformance::conformance(vendor),
        Chore::Vendor { engine, to } => vendor::vendor(&engine, &to),
        Chore::Node { types: true, .. } => node::write_types(),
        Chore::Node { dev: true, .. } => node::place_beside(&node::build(node::Profile::Dev)?),
        Chore::Node { staged: Some(to), .. } => node::pack_placed(&to),
        Chore::Node { .. } => node::node(),
        Chore::Bench { name, json, report } if report.is_empty() => bench::bench(&name, json.as_deref()),
        Chore::Bench { report, .. } => bench::report(&report),
        Chore::Truth { arguments } => cargo::run(
            cargo::cargo(&[
                "run",
                "--release",
                "--quiet",
                "--package",
                "graphzero",
                "--features",
                "truth",
            ])
            .args(["--example", "truth", "--"])
            .args(arguments),
        ),
        Chore::Soak { name } => soak::soak(&name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::workspace;

    /// Every documentation file of the workspace.
    fn pages() -> Vec<PathBuf> {
        ignore::WalkBuilder::new(workspace())
            .hidden(false)
            .build()
            .flatten()
            .map(ignore::DirEntry::into_path)
            .filter(|path| path.extension().is_some_and(|end| end == "md"))
            .filter(|path| !path.starts_with(workspace().join("tests/scenarios")))
            .collect()
    }

    #[test]
    fn every_chore_that_the_documentation_names_exists() {
        let mut named = 0;
        for page in pages() {
            let text = std::fs::read_to_string(&page).expect("a page");
            for command in text.split("cargo xtask ").skip(1) {
                let end = command
                    .find(['`', '\n', '#', ',', ';', ')', '('])
                    .unwrap_or(command.len());
                let words: Vec<&str> = command[..end]
                    .split_whitespace()
                    .map(|word| word.trim_end_matches('.'))
                    .collect();
                let optional = words.iter().any(|word| word.starts_with('['));
                if words.is_empty() || optional {
                    continue;
                }
                named += 1;
                let parsed = Cli::try_parse_from(std::iter::once("xtask").chain(words.iter().copied()));
                // A sentence may name a chore without what it needs.
                let known = match parsed {
                    Ok(_) => true,
                    Err(e) => matches!(
                        e.kind(),
                        clap::error::ErrorKind::MissingRequiredArgument | clap::error::ErrorKind::DisplayHelp
                    ),
                };
                assert!(known, "{}: `cargo xtask {}`", page.display(), words.join(" "));
            }
        }
        assert!(named > 10, "{named} chores are named");
    }
}
