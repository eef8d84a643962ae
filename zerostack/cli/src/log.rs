//! `zero-kernel log`: the session's latest events.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use zerostack::ZeroKernel;
use zerostack::contracts::{Error, Handle};

use crate::{Workspace, fail, print};

/// Prints the session's latest events, newest first.
#[derive(Args)]
pub struct Log {
    #[command(flatten)]
    workspace: Workspace,
    /// How many.
    #[arg(long, default_value_t = 20)]
    limit: u32,
}

impl Log {
    /// Prints the events.
    pub fn run(self) -> ExitCode {
        let events = || -> Result<Vec<serde_json::Value>, Error> {
            let kernel = ZeroKernel::open(self.workspace.config()?)?;
            let entries = kernel.log(self.limit)?;
            Ok(entries
                .into_iter()
                .map(|entry| {
                    let handle = Handle::event(entry.event);
                    match kernel.event(&entry.event) {
                        Ok(event) => json!({ "handle": handle, "event": event }),
                        // A damaged event hides none of the others.
                        Err(error) => json!({ "handle": handle, "cell": entry.cell, "error": error }),
                    }
                })
                .collect())
        };
        match events() {
            Ok(events) => {
                print(&events);
                ExitCode::SUCCESS
            }
            Err(error) => fail(&error),
        }
    }
}
