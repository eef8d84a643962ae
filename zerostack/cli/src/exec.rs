//! `zero-kernel exec`: one cell, one response.

mod short;

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use zerostack::contracts::response::Outcome;
use zerostack::contracts::{CancelToken, Error, ZeroKernelResponse};
use zerostack::{CellOptions, ZeroKernel};

use crate::effects::Channels;
use crate::{Workspace, fail, print, source};

/// Runs one cell; it comes from standard input without `--file`.
#[derive(Args)]
pub struct Exec {
    #[command(flatten)]
    workspace: Workspace,
    #[command(flatten)]
    channels: Channels,
    /// The cell's file; standard input unless given.
    #[arg(long, value_name = "CELL")]
    file: Option<PathBuf>,
    /// A JSON object that the cell sees as `input`.
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Milliseconds of wall-clock time; 30000 unless given.
    #[arg(long, value_name = "N")]
    timeout_ms: Option<u64>,
    /// Print the whole response as JSON on a terminal, too.
    #[arg(long)]
    json: bool,
    /// Print the value, and how the cell ended, for a person: what a terminal gets anyway.
    #[arg(long, conflicts_with = "json")]
    short: bool,
}

impl Exec {
    /// Answers for a cell whose workspace could not be opened: the one document is a response all the same.
    fn reject(&self, error: Error) -> ExitCode {
        if !self.is_short() {
            eprintln!("zero-kernel: {error}");
        }
        self.show(&ZeroKernelResponse::rejected(error));
        ExitCode::from(1)
    }

    fn is_short(&self) -> bool {
        self.short || (!self.json && std::io::stdout().is_terminal())
    }

    fn show(&self, response: &ZeroKernelResponse) -> bool {
        if !self.is_short() {
            return print(response);
        }
        // A reader that has gone away cannot be told anything.
        write!(std::io::stdout().lock(), "{}", short::text(response)).is_ok()
    }

    /// Runs the cell and prints its response.
    pub fn run(self) -> ExitCode {
        let input = match self
            .input
            .as_deref()
            .map(serde_json::from_str::<BTreeMap<String, Value>>)
            .transpose()
        {
            Ok(input) => input,
            Err(e) => {
                eprintln!("zero-kernel: --input is not a JSON object: {e}");
                return ExitCode::from(2);
            }
        };
        let source = match source::read(self.file.as_deref()) {
            Ok(source) => source,
            Err(why) => {
                eprintln!("zero-kernel: {why}");
                return ExitCode::from(2);
            }
        };
        let kernel = self.workspace.config().and_then(|mut config| {
            self.channels.apply(&mut config)?;
            ZeroKernel::open(config)
        });
        let kernel = match kernel {
            Ok(kernel) => kernel,
            Err(error) => return self.reject(error),
        };
        let cancel = CancelToken::new();
        let interrupt = cancel.clone();
        if let Err(e) = ctrlc::set_handler(move || interrupt.cancel()) {
            return fail(&Error::invalid(format!("cannot listen for interrupts: {e}")));
        }
        let response = kernel.execute_cell_with(
            &source,
            CellOptions {
                cancel: Some(cancel),
                input,
                timeout: self.timeout_ms.map(Duration::from_millis),
                ..CellOptions::default()
            },
        );
        if !self.show(&response) {
            return ExitCode::from(1);
        }
        match response.outcome {
            Outcome::Completed => ExitCode::SUCCESS,
            Outcome::Failed => ExitCode::from(1),
            Outcome::Cancelled => ExitCode::from(130),
        }
    }
}
