//! One kernel, and its methods by name.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use zerostack::contracts::json::from_text;
use zerostack::contracts::{Budgets, Error, Response, WorkspacePath};
use zerostack::{CellOptions, KernelConfig, ZeroKernel};

use crate::mailbox::{Call, Mailbox};
use crate::options::KernelOptions;

/// One kernel, opened by its first call.
pub struct Host {
    config: KernelConfig,
    kernel: Mutex<State>,
}

enum State {
    Unopened,
    Open(ZeroKernel),
    Closed,
}

impl Host {
    /// Reads the options; nothing is opened yet.
    ///
    /// # Errors
    /// `invalid_input` that names the option.
    pub fn new(options: &str, supervisor: &Path, _mailbox: &Arc<Mailbox>, _number: u32) -> Result<Self, Error> {
        let options: KernelOptions = from_text(options)?;
        Ok(Self {
            config: options.config(supervisor),
            kernel: Mutex::new(State::Unopened),
        })
    }

    fn kernel(&self) -> Result<ZeroKernel, Error> {
        let mut state = self.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Open(kernel) => Ok(kernel.clone()),
            State::Closed => Err(Error::invalid("this kernel is shut down: make another one")),
            State::Unopened => {
                let kernel = ZeroKernel::open(self.config.clone())?;
                *state = State::Open(kernel.clone());
                Ok(kernel)
            }
        }
    }

    /// Closes the kernel; later calls are refused.
    pub fn close(&self) {
        *self.kernel.lock().unwrap_or_else(PoisonError::into_inner) = State::Closed;
    }

    /// Does one call on the calling thread and returns its answer as JSON.
    ///
    /// # Errors
    /// Those of the method; `invalid_input` for arguments that do not fit it.
    pub fn call(&self, call: &Call, method: &str, arguments: &str) -> Result<String, Error> {
        match method {
            "initialize" => text(&status(&self.kernel()?)?),
            "executeCell" => text(&self.execute(call, arguments)?),
            "status" => text(&status(&self.kernel()?)?),
            _ => Err(Error::invalid(format!("`{method}` is not a method"))),
        }
    }

    fn execute(&self, call: &Call, arguments: &str) -> Result<Response, Error> {
        let cell: ExecuteCell = from_text(arguments)?;
        let kernel = match self.kernel() {
            Ok(kernel) => kernel,
            Err(error) => return Ok(Response::rejected(error)),
        };
        let ExecuteCell { source, options } = cell;
        Ok(kernel.execute_cell_with(
            &source,
            CellOptions {
                timeout: options.timeout_ms.map(Duration::from_millis),
                budgets: options.budgets,
                cancel: Some(call.cancel.clone()),
                input: options.input,
                env: options.env,
                cwd: options.cwd,
            },
        ))
    }
}

/// Arguments of `executeCell`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecuteCell {
    source: String,
    #[serde(default)]
    options: ExecuteOptions,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct ExecuteOptions {
    /// JavaScript keeps the signal itself.
    #[serde(rename = "signal")]
    _signal: bool,
    /// Whether somebody listens to the output of commands.
    on_output: bool,
    timeout_ms: Option<u64>,
    budgets: Option<Budgets>,
    input: Option<BTreeMap<String, Value>>,
    env: BTreeMap<String, String>,
    cwd: Option<WorkspacePath>,
}

fn text<T: serde::Serialize>(answer: &T) -> Result<String, Error> {
    serde_json::to_string(answer).map_err(|e| {
        Error::new(
            zerostack::contracts::ErrorKind::Internal,
            format!("an answer is not JSON: {e}"),
        )
    })
}

fn status(kernel: &ZeroKernel) -> Result<Value, Error> {
    let status = kernel.status()?;
    Ok(json!({
        "running": status.running,
        "framesGivenUp": status.frames_given_up,
        "tainted": status.tainted,
        "root": status.root,
        "store": status.store,
    }))
}
