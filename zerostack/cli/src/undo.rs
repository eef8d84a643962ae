//! `zero-kernel undo`: takes back what a cell committed.

use std::process::ExitCode;

use clap::Args;
use zerostack::ZeroKernel;
use zerostack::contracts::{Error, Handle, UndoOptions, UndoReport, WorkspacePath};

use crate::{Workspace, fail, print};

/// Takes back what a cell committed, whole or by path. Paths that were changed since are left and listed.
#[derive(Args)]
pub struct Undo {
    /// The cell's event: `z://event/…`, as `log` shows it.
    event: String,
    #[command(flatten)]
    workspace: Workspace,
    /// Only what lies at or below this path; may be repeated.
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<String>,
    /// Show what would be done, with the differences, and do nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Undo {
    /// Undoes and prints the report; the exit code is 1 if a path was left as it is.
    pub fn run(self) -> ExitCode {
        match self.report() {
            Ok(report) => {
                print(&report);
                if report.conflicts.is_empty() {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::from(1)
                }
            }
            Err(error) => fail(&error),
        }
    }

    fn report(&self) -> Result<UndoReport, Error> {
        let event: Handle = self.event.parse()?;
        let paths = self
            .paths
            .iter()
            .map(|path| path.parse::<WorkspacePath>())
            .collect::<Result<Vec<_>, _>>()?;
        let options = UndoOptions {
            paths: (!paths.is_empty()).then_some(paths),
            dry_run: self.dry_run,
        };
        ZeroKernel::open(self.workspace.config()?)?.undo(&event, &options)
    }
}
