//! One kernel, and its methods by name: JSON in, JSON out, on the thread of the call.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use zerostack::ZeroKernel;
use zerostack::contracts::effect::EffectState;
use zerostack::contracts::json::from_text;
use zerostack::contracts::{
    CONTRACT_VERSION, CellId, Error, ErrorKind, Handle, SessionName, UndoOptions, ZeroKernelResponse, contract_digest,
};
use zerostack::outbox::EffectFilter;

use crate::cell::ExecuteCell;
use crate::functions::Functions;
use crate::mailbox::{Call, Mailbox, Topic};
use crate::options::KernelConfig;
use crate::upkeep;

/// How long a subscription sleeps before it looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// How long a shutdown waits that names no deadline.
const SHUTDOWN: Duration = Duration::from_secs(10);

/// One kernel, opened by its first call.
pub struct Host {
    state: Mutex<State>,
    /// Kernels that calls made and JavaScript has not taken yet.
    made: Mutex<HashMap<u32, Self>>,
}

enum State {
    Unopened(Box<zerostack::KernelConfig>),
    Open(ZeroKernel),
    Closed,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is one step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host {
    /// Reads the options; nothing is opened yet. `number` is the kernel's in questions to JavaScript.
    ///
    /// # Errors
    /// `invalid_input` that names the option.
    pub fn new(options: &str, supervisor: &Path, mailbox: &Arc<Mailbox>, number: u32) -> Result<Self, Error> {
        let options: KernelConfig = from_text(options)?;
        let functions = Functions::new(mailbox, number);
        Ok(Self::of(State::Unopened(Box::new(
            options.config(supervisor, &functions)?,
        ))))
    }

    fn of(state: State) -> Self {
        Self {
            state: Mutex::new(state),
            made: Mutex::default(),
        }
    }

    fn kernel(&self) -> Result<ZeroKernel, Error> {
        let mut state = lock(&self.state);
        match &*state {
            State::Open(kernel) => Ok(kernel.clone()),
            State::Closed => Err(Error::invalid("this kernel is closed: make another one")),
            State::Unopened(config) => {
                let kernel = ZeroKernel::open((**config).clone())?;
                *state = State::Open(kernel.clone());
                Ok(kernel)
            }
        }
    }

    /// Closes the kernel; later calls are refused.
    pub fn close(&self) {
        *lock(&self.state) = State::Closed;
        lock(&self.made).clear();
    }

    /// Takes the kernel that a call made.
    pub fn take_made(&self, number: u32) -> Option<Self> {
        lock(&self.made).remove(&number)
    }

    /// Does one call on the calling thread and returns its answer as JSON.
    ///
    /// # Errors
    /// Those of the method; `invalid_input` for arguments that do not fit it.
    pub fn call(&self, call: &Call, method: &str, arguments: &str) -> Result<String, Error> {
        match method {
            "executeCell" => {
                let cell: ExecuteCell = from_text(arguments)?;
                text(&match self.kernel() {
                    Ok(kernel) => kernel.execute_cell_with(&cell.source, cell.options.options(call)),
                    Err(error) => ZeroKernelResponse::rejected(error),
                })
            }
            "planCell" => {
                let Source { source } = from_text(arguments)?;
                text(&self.kernel()?.plan_cell(&source)?)
            }
            "initialize" | "status" => text(&status(&self.kernel()?)?),
            "undo" => {
                let Undo { event, options } = from_text(arguments)?;
                text(&self.kernel()?.undo(&event, &options)?)
            }
            "session.get" => {
                let Key { key } = from_text(arguments)?;
                text(&self.kernel()?.session().get(&key)?)
            }
            "session.set" => {
                let Set { key, value, expect } = from_text(arguments)?;
                text(&self.kernel()?.session().set(&key, value, expect)?)
            }
            "session.delete" => {
                let Key { key } = from_text(arguments)?;
                text(&self.kernel()?.session().delete(&key)?)
            }
            "session.list" => {
                let Prefix { prefix } = from_text(arguments)?;
                text(&self.kernel()?.session().list(&prefix)?)
            }
            "session.lastResponse" => text(&self.kernel()?.session().last_response()?),
            "session.reset" => text(&self.kernel()?.session().reset()?),
            "forkSession" => {
                let ForkSession { name, attached } = from_text(arguments)?;
                let fork = self.kernel()?.fork_session(name, attached)?;
                lock(&self.made).insert(call.number, Self::of(State::Open(fork)));
                text(&())
            }
            "events" => {
                let Events {} = from_text(arguments)?;
                self.tell_events(call)
            }
            "log" => {
                let Log { limit } = from_text(arguments)?;
                text(&log(&self.kernel()?, limit)?)
            }
            "reconcile" => text(&self.kernel()?.reconcile(&call.cancel)?),
            "effects" => {
                let List { states, effect, limit } = from_text(arguments)?;
                let filter = EffectFilter {
                    states,
                    effect,
                    limit,
                    ..EffectFilter::default()
                };
                text(&self.kernel()?.effects(&filter)?)
            }
            "abandonEffect" => {
                let Abandon { handle, why } = from_text(arguments)?;
                text(&self.kernel()?.abandon_effect(&handle, &why)?)
            }
            "retryEffect" => {
                let Retry { handle } = from_text(arguments)?;
                text(&self.kernel()?.retry_effect(&handle)?)
            }
            "shutdown" => {
                let Shutdown { deadline_ms } = from_text(arguments)?;
                let deadline = deadline_ms.map_or(SHUTDOWN, Duration::from_millis);
                self.shutdown(deadline)
            }
            "cancel" => {
                let Cancel { cell } = from_text(arguments)?;
                text(&self.kernel()?.cancel(&cell))
            }
            "effect" => {
                let Retry { handle } = from_text(arguments)?;
                text(&self.kernel()?.effect(&handle)?)
            }
            "migrate" | "examine" => self.unopened(call, method),
            _ => upkeep::call(|| self.kernel(), call, method, arguments)
                .unwrap_or_else(|| Err(Error::invalid(format!("`{method}` is not a method")))),
        }
    }

    /// Does a call that must not open the store as a kernel does.
    fn unopened(&self, call: &Call, method: &str) -> Result<String, Error> {
        let config = match &*lock(&self.state) {
            State::Unopened(config) => config.clone(),
            State::Open(_) | State::Closed => return Err(Error::invalid("this kernel was opened: make another one")),
        };
        upkeep::call_unopened(&config, call, method)
            .unwrap_or_else(|| Err(Error::invalid(format!("`{method}` is not a method"))))
    }

    /// Tells every event until the call is cancelled or the session is closed; answers with the number of those lost.
    fn tell_events(&self, call: &Call) -> Result<String, Error> {
        let kernel = self.kernel()?;
        let events = kernel.events();
        // The subscriber knows from here on that nothing escapes it.
        call.mailbox.post(Topic::Told, call.number, "null".into());
        while !call.cancel.is_cancelled() && !kernel.status()?.closed {
            let mut next = events.next_within(LOOK);
            while let Some(recorded) = next {
                let told = json!({ "handle": recorded.handle, "event": recorded.event });
                call.mailbox.post(Topic::Told, call.number, told.to_string());
                next = events.try_next();
            }
        }
        text(&events.lost())
    }

    /// Shuts the session down. A kernel that was never opened stays so.
    fn shutdown(&self, deadline: Duration) -> Result<String, Error> {
        let kernel = match &*lock(&self.state) {
            State::Open(kernel) => Some(kernel.clone()),
            State::Unopened(_) | State::Closed => None,
        };
        let mut left = json!({ "cells": [], "framesGivenUp": 0, "parsers": 0 });
        if let Some(kernel) = &kernel {
            let leftovers = kernel.shutdown(deadline)?;
            left["cells"] = json!(leftovers.cells);
            left["framesGivenUp"] = json!(leftovers.frames_given_up);
            left["parsers"] = json!(leftovers.parsers);
            if let Some(holder) = &leftovers.lease {
                left["lease"] = lease(holder);
            }
        }
        // Cells that still run hold the kernel open themselves.
        *lock(&self.state) = State::Closed;
        text(&left)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Undo {
    event: Handle,
    #[serde(default)]
    options: UndoOptions,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    key: String,
    value: Value,
    /// `null` is a value here: it means "not set".
    #[serde(default, deserialize_with = "present")]
    expect: Option<Value>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prefix {
    #[serde(default)]
    prefix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForkSession {
    name: SessionName,
    #[serde(default)]
    attached: bool,
}

/// JavaScript keeps `persistent` itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "`persistent` and nothing else")]
struct Events {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Log {
    #[serde(default = "twenty")]
    limit: u32,
}

const fn twenty() -> u32 {
    20
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct List {
    states: Vec<EffectState>,
    effect: Option<String>,
    limit: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Abandon {
    handle: Handle,
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Retry {
    handle: Handle,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cancel {
    cell: CellId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Shutdown {
    deadline_ms: Option<u64>,
}

/// An answer as JSON.
pub fn text<T: Serialize>(answer: &T) -> Result<String, Error> {
    serde_json::to_string(answer).map_err(|e| Error::new(ErrorKind::Internal, format!("an answer is not JSON: {e}")))
}

fn status(kernel: &ZeroKernel) -> Result<Value, Error> {
    let status = kernel.status()?;
    let mut answer = json!({
        "running": status.running,
        "framesGivenUp": status.frames_given_up,
        "tainted": status.tainted,
        "closed": status.closed,
        "session": status.session,
        "root": status.root,
        "store": status.store,
        "contract": { "version": CONTRACT_VERSION, "digest": contract_digest() },
    });
    if let Some(holder) = &status.lease {
        answer["lease"] = lease(holder);
    }
    Ok(answer)
}

/// The latest events; a damaged one hides none of the others.
fn log(kernel: &ZeroKernel, limit: u32) -> Result<Vec<Value>, Error> {
    let entries = kernel.log(limit)?.into_iter();
    Ok(entries
        .map(|entry| {
            let handle = entry.handle;
            match kernel.event(&handle) {
                Ok(event) => json!({ "handle": handle, "event": event }),
                Err(error) => json!({ "handle": handle, "cell": entry.cell, "error": error }),
            }
        })
        .collect())
}

fn lease(holder: &zero_supervisor::lease::Holder) -> Value {
    json!({ "pid": holder.process.pid, "cell": holder.cell, "epoch": holder.epoch, "alive": holder.alive })
}
