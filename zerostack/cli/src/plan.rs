//! `zero-kernel plan`: which calls of `z` a cell can make, without running it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::{fail, print, source};

/// Prints which calls of `z` a cell can make; it comes from standard input without `--file`. Nothing runs.
#[derive(Args)]
pub struct Plan {
    /// The cell's file; standard input unless given.
    #[arg(long, value_name = "CELL")]
    file: Option<PathBuf>,
}

impl Plan {
    /// Prints the plan.
    pub fn run(self) -> ExitCode {
        let source = match source::read(self.file.as_deref()) {
            Ok(source) => source,
            Err(why) => {
                eprintln!("zero-kernel: {why}");
                return ExitCode::from(2);
            }
        };
        match zerostack::plan_cell(&source) {
            Ok(plan) => {
                print(&plan);
                ExitCode::SUCCESS
            }
            Err(error) => fail(&error),
        }
    }
}
