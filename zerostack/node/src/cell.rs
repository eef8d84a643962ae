//! One cell: its options, and its output on the way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use zerostack::contracts::{Budgets, CellId, Content, WorkspacePath};
use zerostack::{Output, OutputStream};

use crate::mailbox::{Call, Topic};

/// Arguments of `executeCell`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecuteCell {
    /// The body of the cell.
    pub source: String,
    /// How it is run.
    #[serde(default)]
    pub options: CellOptions,
}

/// How a cell is run.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CellOptions {
    /// The cell's name; never one that was used before. Without it the kernel makes one.
    id: Option<CellId>,
    /// Cancels the cell when it is aborted.
    #[serde(rename = "signal")]
    _signal: bool,
    /// Ends what the cell waits for when it is fired, and lets the cell go on.
    #[serde(rename = "interrupt")]
    _interrupt: bool,
    /// Wall-clock time; without it the budget's. Zero: the cell is parsed, and nothing runs.
    timeout_ms: Option<u64>,
    /// Budgets; without them the kernel's. What they do not name has its default.
    budgets: Option<Budgets>,
    /// What the cell sees as `input`: an object of JSON values.
    input: Option<BTreeMap<String, Value>>,
    /// Environment variables that every command of the cell gets.
    env: BTreeMap<String, String>,
    /// What a command reads whose call names no `stdin`.
    stdin: Option<Content>,
    /// Directory that commands start in, relative to the root; without it the root.
    cwd: Option<WorkspacePath>,
    /// Gets the output of commands while they run.
    on_output: bool,
}

impl CellOptions {
    /// The kernel's options for this call.
    pub fn options(self, call: &Call) -> zerostack::CellOptions {
        zerostack::CellOptions {
            id: self.id,
            timeout: self.timeout_ms.map(Duration::from_millis),
            budgets: self.budgets,
            cancel: Some(call.cancel.clone()),
            interrupt: Some(call.interrupt.clone()),
            input: self.input,
            env: self.env,
            stdin: self.stdin,
            cwd: self.cwd,
            on_output: self.on_output.then(|| {
                let (mailbox, number) = (Arc::clone(&call.mailbox), call.number);
                Arc::new(move |output: Output<'_>| mailbox.post(Topic::Told, number, told(&output))) as _
            }),
        }
    }
}

fn told(output: &Output<'_>) -> String {
    let stream = match output.stream {
        OutputStream::Stdout => "stdout",
        OutputStream::Stderr => "stderr",
    };
    json!({
        "cell": output.cell,
        "run": output.run,
        "stream": stream,
        "base64": STANDARD.encode(output.bytes),
    })
    .to_string()
}
