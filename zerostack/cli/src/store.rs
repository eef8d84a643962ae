//! `zero-kernel gc` and `migrate`: the upkeep of a store.

use std::process::ExitCode;

use clap::Args;
use zerostack::contracts::CancelToken;
use zerostack::{GcOptions, ZeroKernel};

use crate::{Workspace, fail, print};

/// Removes what nothing in the store refers to any more.
#[derive(Args)]
pub struct Gc {
    #[command(flatten)]
    workspace: Workspace,
    /// Forget all but this many of each session's latest events, and what only they hold.
    #[arg(long, value_name = "N")]
    keep_events: Option<u64>,
}

/// Brings an older store to the format of this build, all or nothing.
#[derive(Args)]
pub struct Migrate {
    #[command(flatten)]
    workspace: Workspace,
}

impl Gc {
    /// Collects and prints what was done.
    pub fn run(self) -> ExitCode {
        let options = GcOptions {
            keep_events: self.keep_events,
        };
        let done = self
            .workspace
            .config()
            .and_then(ZeroKernel::open)
            .and_then(|kernel| kernel.gc(&options, &CancelToken::new()));
        match done {
            Ok(report) => {
                print(&report);
                ExitCode::SUCCESS
            }
            Err(error) => fail(&error),
        }
    }
}

impl Migrate {
    /// Migrates and prints the versions before and after.
    pub fn run(self) -> ExitCode {
        match self.workspace.config().and_then(|config| zerostack::migrate(&config)) {
            Ok(migrated) => {
                print(&migrated);
                ExitCode::SUCCESS
            }
            Err(error) => fail(&error),
        }
    }
}
