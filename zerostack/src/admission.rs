//! Which cells run now, and on whose behalf: admission, cancellation by name, scopes that end together.
//!
//! A cell's token ends with the host's token, with its scope, and with [`Admission::cancel`]; the kernel never cancels the
//! token that the host gave.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use zero_contracts::{CancelToken, CellId, Error, ErrorKind, SessionName};

use crate::cell::lock;
use crate::config::Result;

/// On whose behalf cells run: a session, and what ends all of them at once.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// The session.
    pub(crate) session: SessionName,
    /// Cancelled when the scope is shut down; a child of the parent's if the session is attached to one.
    pub(crate) token: CancelToken,
}

/// The cells of one kernel, whatever their session.
#[derive(Default)]
pub(crate) struct Admission {
    cells: Mutex<Cells>,
    freed: Condvar,
}

#[derive(Default)]
struct Cells {
    /// Cells that were admitted or wait for it, with what ends them.
    known: BTreeMap<CellId, Known>,
    running: usize,
}

struct Known {
    /// The cell's own token.
    token: CancelToken,
    /// Its scope's token.
    scope: CancelToken,
    running: bool,
}

/// A cell that the kernel knows of; dropping it forgets the cell and lets the next one in.
pub(crate) struct Admitted<'a> {
    admission: &'a Admission,
    id: CellId,
}

impl Admission {
    /// Makes a cell known: from now on it can be cancelled by its name.
    ///
    /// # Errors
    /// `invalid_input` if a cell of this name is known already.
    pub(crate) fn announce(&self, id: &CellId, token: &CancelToken, scope: &Scope) -> Result<Admitted<'_>> {
        let mut cells = lock(&self.cells);
        if cells.known.contains_key(id) {
            return Err(Error::invalid(format!("a cell named {id} runs already")).with_path("id"));
        }
        let known = Known {
            token: token.clone(),
            scope: scope.token.clone(),
            running: false,
        };
        cells.known.insert(id.clone(), known);
        Ok(Admitted {
            admission: self,
            id: id.clone(),
        })
    }

    /// Cancels a cell; tells whether it was known.
    pub(crate) fn cancel(&self, id: &CellId) -> bool {
        let cells = lock(&self.cells);
        let known = cells.known.get(id);
        if let Some(known) = known {
            known.token.cancel();
        }
        known.is_some()
    }

    /// The cells that run, in order of name.
    pub(crate) fn running(&self) -> Vec<CellId> {
        let cells = lock(&self.cells);
        let running = cells.known.iter().filter(|(_, known)| known.running);
        running.map(|(id, _)| id.clone()).collect()
    }

    /// Waits until no cell of an ended scope is known any more; returns those that still are at the deadline.
    pub(crate) fn wait_ended(&self, deadline: Instant) -> Vec<CellId> {
        let mut cells = lock(&self.cells);
        loop {
            let left: Vec<CellId> = cells
                .known
                .iter()
                .filter(|(_, known)| known.scope.is_cancelled())
                .map(|(id, _)| id.clone())
                .collect();
            let now = Instant::now();
            if left.is_empty() || now >= deadline {
                return left;
            }
            let nap = (deadline - now).min(Duration::from_millis(20));
            let waited = self.freed.wait_timeout(cells, nap);
            cells = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Admitted<'_> {
    /// Waits for a free place among the cells that run at once.
    ///
    /// # Errors
    /// `busy` when the token's time is up; `cancelled`.
    pub(crate) fn enter(&self, most: usize, token: &CancelToken) -> Result<()> {
        let mut cells = lock(&self.admission.cells);
        while cells.running >= most {
            token.check().map_err(|e| match e.kind {
                ErrorKind::Deadline => {
                    Error::new(ErrorKind::Busy, format!("{most} cells run already; none ended in time"))
                }
                _ => e,
            })?;
            let waited = self.admission.freed.wait_timeout(cells, Duration::from_millis(20));
            cells = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        cells.running += 1;
        if let Some(known) = cells.known.get_mut(&self.id) {
            known.running = true;
        }
        Ok(())
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        let mut cells = lock(&self.admission.cells);
        if cells.known.remove(&self.id).is_some_and(|known| known.running) {
            cells.running -= 1;
        }
        drop(cells);
        self.admission.freed.notify_all();
    }
}

/// Ends the calls of a cell that are at work, and lets the cell go on.
///
/// A command is ended as by a cancellation (`reason: "cancelled"`); any other call fails with `cancelled`, which the cell
/// may catch. Calls made later are not touched. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<Mutex<Calls>>);

#[derive(Default)]
struct Calls {
    next: u64,
    tokens: BTreeMap<u64, CancelToken>,
    fired: bool,
}

/// A call that can be interrupted until this is dropped.
pub(crate) struct Interruptible<'a> {
    interrupt: &'a Interrupt,
    key: u64,
    pub(crate) token: CancelToken,
}

impl Interrupt {
    /// Makes one that no cell uses yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the calls that are at work now; returns how many there were.
    pub fn fire(&self) -> usize {
        let mut calls = lock(&self.0);
        calls.fired |= !calls.tokens.is_empty();
        calls.tokens.values().for_each(CancelToken::cancel);
        calls.tokens.len()
    }

    /// Whether a call was ever ended.
    pub(crate) fn has_fired(&self) -> bool {
        lock(&self.0).fired
    }

    /// Takes in a call.
    pub(crate) fn enter(&self, token: &CancelToken) -> Interruptible<'_> {
        let token = token.child(None);
        let mut calls = lock(&self.0);
        let key = calls.next;
        calls.next += 1;
        calls.tokens.insert(key, token.clone());
        Interruptible {
            interrupt: self,
            key,
            token,
        }
    }
}

impl Drop for Interruptible<'_> {
    fn drop(&mut self) {
        lock(&self.interrupt.0).tokens.remove(&self.key);
    }
}
