//! `zero-kernel log`: the session's latest events, to be read by a person, as JSON, or as evidence for somebody else.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use zerostack::ZeroKernel;
use zerostack::contracts::event::HostAct;
use zerostack::contracts::response::Disposition;
use zerostack::contracts::{Error, Handle, ZeroKernelEvent};

use crate::{Workspace, fail, print};

/// Prints the session's latest events, newest first.
#[derive(Args)]
pub struct Log {
    #[command(flatten)]
    workspace: Workspace,
    /// How many.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// Print one JSON document with the whole events.
    #[arg(long)]
    json: bool,
    /// Print the whole chain, oldest first, as a file that `verify` checks with nothing else.
    #[arg(long, conflicts_with_all = ["json", "event"])]
    chain: bool,
    /// Print one event as a file that `verify` checks with nothing else.
    #[arg(long, value_name = "EVENT", conflicts_with = "json")]
    event: Option<String>,
}

impl Log {
    /// Prints the events.
    pub fn run(self) -> ExitCode {
        match self.printed() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error),
        }
    }

    fn printed(&self) -> Result<(), Error> {
        let kernel = ZeroKernel::open(self.workspace.config()?)?;
        if let Some(event) = &self.event {
            let event: Handle = event.parse()?;
            print(&kernel.export_event(&event)?);
            return Ok(());
        }
        if self.chain {
            print(&kernel.export_chain()?);
            return Ok(());
        }
        let entries = kernel.log(self.limit)?.into_iter();
        // A damaged event hides none of the others.
        let events = entries.map(|entry| (entry.handle, entry.cell, kernel.event(&entry.handle)));
        if self.json {
            let events: Vec<_> = events
                .map(|(handle, cell, event)| match event {
                    Ok(event) => json!({ "handle": handle, "event": event }),
                    Err(error) => json!({ "handle": handle, "cell": cell, "error": error }),
                })
                .collect();
            print(&events);
            return Ok(());
        }
        for (handle, cell, event) in events {
            let text = match event {
                Ok(event) => readable(&handle, &event),
                Err(error) => format!("{handle}\n    {cell}: not readable any more: {error}\n"),
            };
            use std::io::Write;
            // A reader that has gone away cannot be told anything.
            let _ = writeln!(std::io::stdout().lock(), "{text}");
        }
        Ok(())
    }
}

/// One event in a few lines.
fn readable(handle: &Handle, event: &ZeroKernelEvent) -> String {
    let mut text = format!("{handle}\n    {}  {}", time(event.at_ms), event.cell);
    text += &match &event.act {
        Some(act) => format!("  by the host: {}", what_the_host_did(act)),
        None => format!("  {:?} in {:.0} ms", event.outcome, event.ledger.wall_ms),
    };
    let calls: Vec<_> = event
        .ledger
        .calls
        .iter()
        .map(|(name, n)| format!("{n} {name}"))
        .collect();
    if !calls.is_empty() {
        text += &format!(" ({})", calls.join(", "));
    }
    text.push('\n');
    if let Some(error) = &event.error {
        text += &format!(
            "    {}: {}\n",
            error.kind,
            error.detail.lines().next().unwrap_or_default()
        );
    }
    for process in &event.processes {
        let how = match (process.exit_code, &process.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => signal.clone(),
            (None, None) => "not started".to_owned(),
        };
        text += &format!("    ran {}: {how}\n", process.argv.join(" "));
    }
    if event.disposition == Disposition::Committed {
        for receipt in &event.receipts {
            let what = match (&receipt.before, &receipt.after) {
                (None, _) => "made   ",
                (_, None) => "removed",
                _ => "changed",
            };
            text += &format!("    {what} {}\n", receipt.path);
        }
    } else if !event.receipts.is_empty() {
        let paths = if event.receipts.len() == 1 { "path" } else { "paths" };
        text += &format!("    restored {} {paths}\n", event.receipts.len());
    }
    if !event.state.unchanged {
        text += "    changed the state\n";
    }
    text
}

/// An act of the host in a few words.
fn what_the_host_did(act: &HostAct) -> String {
    match act {
        HostAct::Undo { of } => format!("undo of {}", Handle::event(*of)),
        // Whatever else there is says it by its own names.
        other => json!(other).to_string(),
    }
}

/// A time in UTC, to the second.
fn time(at_ms: u64) -> String {
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(at_ms);
    humantime::format_rfc3339_seconds(at).to_string()
}
