//! One cell: its options, and its output on the way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use zerostack::contracts::{Budgets, CellId, Content, WorkspacePath};
use zerostack::{CellOptions, Output, OutputStream};

use crate::mailbox::{Call, Topic};

/// Arguments of `executeCell`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecuteCell {
    /// The body of the cell.
    pub source: String,
    /// How it is run.
    #[serde(default)]
    pub options: ExecuteOptions,
}

/// How a cell is run.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExecuteOptions {
    id: Option<CellId>,
    /// JavaScript keeps the signal itself.
    #[serde(rename = "signal")]
    _signal: bool,
    /// JavaScript keeps what fires it.
    #[serde(rename = "interrupt")]
    _interrupt: bool,
    timeout_ms: Option<u64>,
    budgets: Option<Budgets>,
    input: Option<BTreeMap<String, Value>>,
    env: BTreeMap<String, String>,
    stdin: Option<Content>,
    cwd: Option<WorkspacePath>,
    on_output: bool,
}

impl ExecuteOptions {
    /// The kernel's options for this call.
    pub fn options(self, call: &Call) -> CellOptions {
        CellOptions {
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
