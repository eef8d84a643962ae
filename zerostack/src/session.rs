//! The host's own hand on a session: its facts, its last response, copies of it.
//!
//! What a host changes is recorded in the session's chain as a cell's end is, so that the states of a chain always join.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use zero_contracts::event::HostAct;
use zero_contracts::response::{EffectsReport, Outcome, Protocol, StateChange};
use zero_contracts::state::{StateEntry, StateRequest, StateResult};
use zero_contracts::tokens::{ProjectText, TextKind};
use zero_contracts::{
    CancelToken, Error, ErrorKind, Handle, JsonValue, SessionName, ZeroKernelEvent, ZeroKernelResponse,
};

use crate::admission::Scope;
use crate::cell::{Cell, CellStart};
use crate::config::Result;
use crate::facts::Facts;
use crate::kernel::{Kernel, ZeroKernel, new_cell_id};
use crate::record::{now_ms, store_event};
use crate::sessions::Head;
use crate::settle;

/// A session as its host sees it. Every call reads what is committed now, by whatever host.
#[derive(Clone)]
pub struct Session(ZeroKernel);

impl ZeroKernel {
    /// Returns the session on whose behalf this kernel runs cells.
    pub fn session(&self) -> Session {
        Session(self.clone())
    }

    /// Begins a session as a copy of this one: same facts, and a chain that goes on from here. What either does later is
    /// not seen by the other. An attached session is shut down with this one; a detached one goes on.
    ///
    /// # Errors
    /// `conflict` if there is a session of that name; `cancelled` if the kernel was shut down; `corrupt`, `io`, `busy`.
    #[tracing::instrument(level = "debug", skip_all, fields(from = self.scope.session.as_str(), to = name.as_str()))]
    pub fn fork_session(&self, name: SessionName, attached: bool) -> Result<Self> {
        let kernel = &self.kernel;
        let token = self.host_token();
        let _head = kernel.sessions.lock(&name, &token)?;
        let from = kernel.begin(&self.scope.session, &token)?;
        if kernel.sessions.head(&name)? != Head::default() {
            return Err(
                Error::new(ErrorKind::Conflict, format!("there is a session `{name}` already"))
                    .with_path("name")
                    .retryable(false),
            );
        }
        let cell = new_cell_id();
        let mut event = ZeroKernelEvent::blank(name.clone(), cell.clone(), now_ms());
        event.outcome = Outcome::Completed;
        event.act = Some(HostAct::Fork {
            from: self.scope.session.clone(),
        });
        event.state = StateChange {
            before: None,
            after: from.state,
            unchanged: from.state.is_none(),
        };
        event.previous = from.event;
        let digest = store_event(kernel, &mut event)?;
        let head = Head {
            state: from.state,
            event: Some(digest),
        };
        kernel.append(&name, &cell, head, from.state.is_some())?;
        kernel.subscribers.publish(Handle::event(digest), &event);
        Ok(Self {
            kernel: Arc::clone(kernel),
            scope: Scope {
                session: name,
                token: if attached {
                    self.scope.token.child(None)
                } else {
                    CancelToken::new()
                },
            },
        })
    }

    /// What bounds a call of the host that names no time of its own.
    pub(crate) fn host_token(&self) -> CancelToken {
        let wall = std::time::Duration::from_millis(self.kernel.config.budgets.wall_ms);
        self.scope.token.child(Instant::now().checked_add(wall))
    }

    /// A cell that no frame runs: what the host does goes the way of every cell.
    pub(crate) fn host_cell(&self, head: Head) -> Cell {
        let config = &self.kernel.config;
        let start = CellStart {
            id: new_cell_id(),
            session: self.scope.session.clone(),
            budgets: config.budgets.clone(),
            env: std::collections::BTreeMap::new(),
            cwd: zero_contracts::WorkspacePath::root(),
            stdin: None,
            deadline: None,
            cancel: CancelToken::new(),
            on_output: None,
            interrupt: crate::admission::Interrupt::new(),
            head,
        };
        Cell::new(Arc::clone(&self.kernel), start)
    }
}

impl Session {
    /// The session's name.
    pub fn name(&self) -> &SessionName {
        &self.0.scope.session
    }

    /// Returns a fact; none if it is not set.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn get(&self, key: &str) -> Result<Option<Value>> {
        let entries = self.list(key)?;
        Ok(entries
            .into_iter()
            .find(|entry| entry.key == key)
            .map(|entry| entry.value.0))
    }

    /// Returns the facts whose keys start with a prefix, in order of the keys.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn list(&self, prefix: &str) -> Result<Vec<StateEntry>> {
        let kernel = &self.0.kernel;
        let head = kernel.begin(self.name(), &self.0.host_token())?;
        let mut facts = Facts::load(head.state, &*kernel.objects)?;
        match facts.call(StateRequest::List { prefix: prefix.into() })? {
            StateResult::Entries(entries) => Ok(entries),
            StateResult::Flag(_) | StateResult::Value(_) => Ok(Vec::new()),
        }
    }

    /// Sets a fact. With `expect`, only if it is that now (`null`: not set).
    ///
    /// # Errors
    /// `conflict` if it is not as expected, `budget` for a value or state too large, `invalid_input` for a bad key;
    /// `cancelled`, `corrupt`, `io`, `busy`.
    pub fn set(&self, key: &str, value: Value, expect: Option<Value>) -> Result<()> {
        let act = HostAct::Set {
            keys: vec![key.to_owned()],
        };
        let request = StateRequest::Set {
            key: key.to_owned(),
            value: JsonValue(value),
            expect: expect.map(JsonValue),
        };
        self.change(&act, |facts| facts.call(request.clone()).map(drop))
    }

    /// Deletes a fact, if it is set.
    ///
    /// # Errors
    /// `cancelled`, `corrupt`, `io`, `busy`.
    pub fn delete(&self, key: &str) -> Result<()> {
        let act = HostAct::Set {
            keys: vec![key.to_owned()],
        };
        let request = StateRequest::Delete { key: key.to_owned() };
        self.change(&act, |facts| facts.call(request.clone()).map(drop))
    }

    /// Empties the session's state. Its events stay, and files are not touched.
    ///
    /// # Errors
    /// `cancelled`, `corrupt`, `io`, `busy`.
    pub fn reset(&self) -> Result<()> {
        self.change(&HostAct::Reset, |facts| {
            facts.clear();
            Ok(())
        })
    }

    /// Returns the response of the session's latest cell, as its event tells it; none if no cell ever ended.
    ///
    /// # Errors
    /// `not_found` if the event or its value was collected; `corrupt`, `io`, `busy`.
    pub fn last_response(&self) -> Result<Option<ZeroKernelResponse>> {
        let kernel = &self.0.kernel;
        let mut at = kernel.begin(self.name(), &self.0.host_token())?.event;
        while let Some(digest) = at {
            let event = kernel.event(&digest)?;
            if event.act.is_none() {
                return response_of(kernel, event, Handle::event(digest)).map(Some);
            }
            at = event.previous;
        }
        Ok(None)
    }

    /// Changes facts by compare-and-set, again if another cell was faster.
    fn change(&self, act: &HostAct, work: impl Fn(&mut Facts) -> Result<()>) -> Result<()> {
        let token = self.0.host_token();
        loop {
            let head = self.0.kernel.begin(self.name(), &token)?;
            let cell = self.0.host_cell(head);
            let changed = cell.with_facts(|facts| {
                work(facts)?;
                Ok(facts.is_changed())
            })?;
            if !changed {
                return Ok(());
            }
            match settle::settle_act(&cell, act.clone(), Vec::new(), &token).error {
                None => return Ok(()),
                Some(error) if error.kind == ErrorKind::Conflict && error.retryable => token.check()?,
                Some(error) => return Err(error.into()),
            }
        }
    }
}

/// Puts a response together from the event that records it.
fn response_of(kernel: &Kernel, event: ZeroKernelEvent, handle: Handle) -> Result<ZeroKernelResponse> {
    let value = match &event.value {
        None => None,
        Some(digest) => Some(JsonValue(
            serde_json::from_slice(&kernel.objects.get(digest)?)
                .map_err(|e| Error::new(ErrorKind::Corrupt, format!("the value {digest} is not JSON: {e}")))?,
        )),
    };
    let console = match &event.console {
        None => String::new(),
        Some(text) => {
            let how = ProjectText {
                kind: TextKind::Log,
                budget: kernel.config.budgets.console_tokens,
                ..ProjectText::default()
            };
            let token = CancelToken::with_timeout(std::time::Duration::from_secs(30));
            let shown = kernel
                .tokens
                .project_object(&text.digest, &how, &*kernel.objects, &token)?;
            shown.text
        }
    };
    Ok(ZeroKernelResponse {
        protocol: Protocol::ZeroKernel,
        outcome: event.outcome,
        value,
        error: event.error,
        effects: EffectsReport {
            disposition: event.disposition,
            receipts: event.receipts.len() as u64,
            conflicts: event.conflicts,
            ignored_paths: event.ignored_paths,
            capture: event.capture,
        },
        handles: event.handles,
        event: Some(handle),
        state: event.state,
        ledger: event.ledger,
        console,
    })
}
