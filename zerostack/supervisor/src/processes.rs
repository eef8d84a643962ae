//! The owner of all commands of one cell: starts them, ends them together, and knows which are proven gone.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::canceller::Canceller;
use crate::child::{Guard, GuardEnd};
use crate::error::Error;
use crate::identity::Identity;
use crate::marker::{self, Marker};
use crate::outcome::Termination;
use crate::owner::{EXIT_EMPTY, EXIT_GUARDED, EXIT_UNUSED};
use crate::protocol::EndReason;
use crate::running::{Io, Running};
use crate::spec::{Files, Overlay, Spec, View};
use crate::start::{Ready, check, fresh_name};
use crate::temporary::Temporary;

/// Owner of the commands of one cell. `Send + Sync`, cheap to clone; all clones are one owner.
///
/// Calls block: use them from threads that may (for tokio, `spawn_blocking`).
#[derive(Debug, Clone)]
pub struct Processes(Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    program: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
    /// The owner's own temporary directory, once a command needed one.
    temporary: OnceLock<Temporary>,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    next: u64,
    live: HashMap<u64, Canceller>,
    unproven: Vec<Unproven>,
    started: u64,
    reaped: u64,
}

/// A tree whose end was not established when its command returned.
#[derive(Debug)]
pub(crate) struct Unproven {
    /// There until it is dropped.
    guard: Option<Guard>,
    pub(crate) end: Option<GuardEnd>,
    pub(crate) identity: Option<Identity>,
    pub(crate) marker_dir: Option<PathBuf>,
}

/// How many trees an owner started, and what is known of their end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Trees started.
    pub started: u64,
    /// Trees proven empty, their supervisor reaped.
    pub reaped: u64,
    /// Trees that have neither been proven empty nor are being driven.
    pub unproven: u64,
    /// Trees that run.
    pub live: u64,
}

impl Processes {
    /// An owner that starts commands through the supervisor at `program` (see [`crate::locate`]).
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Shared {
            program: program.into(),
            state: Mutex::default(),
            changed: Condvar::new(),
            temporary: OnceLock::new(),
        }))
    }

    /// Starts a command. When this returns, its program runs (or could not be executed, which [`Running::drive`] reports).
    ///
    /// # Errors
    /// [`Error::Closed`] after [`Self::close`]; [`Error::Invalid`] for a spec that cannot work; [`Error::Unsupported`] when
    /// a demanded tier is not to be had; otherwise what failed. Nothing is left running then.
    pub fn spawn(&self, spec: Spec) -> Result<Running, Error> {
        check(&spec)?;
        self.ready()?.spawn(spec)
    }

    /// Starts a supervisor for a command whose spec is still to come, so that it gets ready meanwhile. It counts as live
    /// until it is used or dropped.
    ///
    /// # Errors
    /// [`Error::Closed`] after [`Self::close`]; [`Error::Io`] when it cannot be started.
    pub fn ready(&self) -> Result<Ready, Error> {
        let canceller = Canceller::new()?;
        // Registered before anything is started: from here on `close` reaches it.
        let ticket = {
            let mut state = self.0.lock();
            if state.closed {
                return Err(Error::Closed);
            }
            state.next += 1;
            let number = state.next;
            state.live.insert(number, canceller.clone());
            Ticket {
                shared: Arc::clone(&self.0),
                number,
                settled: false,
            }
        };
        Ready::start(&self.0.program, canceller, ticket)
    }

    /// Why no private overlay over `root` can be had here; `None` if it can. Tried with its writes in fresh directories in
    /// `scratch` (which must exist, on the file system the real ones will be on). Costs one short command.
    ///
    /// # Errors
    /// As [`Self::spawn`], or when the directories cannot be made. "No" is not an error.
    pub fn why_no_overlay(&self, root: &Path, scratch: &Path) -> Result<Option<String>, Error> {
        let name = format!("overlay-probe-{}", fresh_name());
        let place = scratch.join(name);
        let (upper, work) = (place.join("upper"), place.join("work"));
        for dir in [&place, &upper, &work] {
            std::fs::create_dir(dir).map_err(Error::io(format!("making {}", dir.display())))?;
        }
        let mut spec = Spec::shell(
            "set -e; d=$(mktemp -d ./.zero-probe-XXXXXX); : > $d/f; rm $d/f; rmdir $d",
            root,
        );
        spec.view = View::Overlay(Overlay {
            root: root.into(),
            upper,
            work,
            through: Vec::new(),
        });
        let ran = match self
            .spawn(spec)
            .map(|running| running.drive(Io::new(&mut std::io::sink(), &mut std::io::sink())))
        {
            Ok(outcome) if outcome.termination == (Termination::Exited { code: 0 }) => Ok(None),
            Ok(outcome) => Ok(Some(format!(
                "a command in the view ended otherwise: {:?}",
                outcome.termination
            ))),
            Err(Error::Unsupported(why)) => {
                let obstacles = crate::obstacles::obstacles(scratch);
                Ok(Some(
                    std::iter::once(why).chain(obstacles).collect::<Vec<_>>().join("; "),
                ))
            }
            Err(error) => Err(error),
        };
        // In an overlay's work directory the kernel leaves a second one of that name, without permissions.
        let inner = place.join("work").join("work");
        for left in [inner.clone(), inner.join("incompat"), inner.join("incompat/volatile")] {
            let _ = std::fs::set_permissions(left, std::os::unix::fs::PermissionsExt::from_mode(0o700));
        }
        let _ = std::fs::remove_dir_all(&place);
        ran
    }

    /// Refuses new commands and cancels all that run, in parallel. Does not wait.
    pub fn close(&self) {
        self.end_all(EndReason::Cancelled, true);
    }

    /// Cancels all that run for this reason, without closing. Does not wait.
    pub fn cancel_all(&self, reason: EndReason) {
        self.end_all(reason, false);
    }

    fn end_all(&self, reason: EndReason, close: bool) {
        let mut state = self.0.lock();
        state.closed |= close;
        for canceller in state.live.values() {
            canceller.cancel(reason);
        }
    }

    /// Waits until no command is driven any more and every tree is proven empty, at most until `deadline`.
    #[must_use]
    pub fn wait_empty(&self, deadline: Instant) -> Counts {
        let mut state = self.0.lock();
        loop {
            state.prove();
            let left = deadline.saturating_duration_since(Instant::now());
            if (state.live.is_empty() && state.unproven.is_empty()) || left.is_zero() {
                return state.counts();
            }
            // Unproven trees have nobody who tells of their end.
            let nap = if state.unproven.is_empty() {
                left
            } else {
                left.min(Duration::from_millis(5))
            };
            state = self
                .0
                .changed
                .wait_timeout(state, nap)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// What is known now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut state = self.0.lock();
        state.prove();
        state.counts()
    }
}

impl Shared {
    /// Gives a confined command a place for temporary files when its own is not writable as a whole, which is so where the
    /// store lies in it: a private directory that lives as long as this owner.
    fn give_temporary(&self, spec: &mut Spec) -> Result<(), Error> {
        let Files::Landlock { writable, .. } = &mut spec.files else {
            return Ok(());
        };
        let own = spec
            .env
            .iter()
            .rev()
            .find(|(name, value)| name == "TMPDIR" && !value.is_empty());
        let own = own.map_or_else(|| PathBuf::from("/tmp"), |(_, value)| PathBuf::from(value));
        let own = std::fs::canonicalize(&own).unwrap_or(own);
        if writable.iter().any(|path| own.starts_with(path)) {
            return Ok(());
        }
        let dir = match self.temporary.get() {
            Some(dir) => dir,
            None => {
                let place = std::env::temp_dir();
                let made = Temporary::make(&place);
                let made = made.map_err(Error::io(format!("making a directory in {}", place.display())))?;
                // Another thread may have been first; then its directory is used and this one goes.
                let _ = self.temporary.set(made);
                self.temporary
                    .get()
                    .ok_or_else(|| Error::Supervisor("no temporary directory".into()))?
            }
        };
        let dir = dir.path().to_owned();
        writable.push(dir.clone());
        spec.env.push(("TMPDIR".into(), dir.into_os_string()));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change of the state is complete at once, so a panic elsewhere left it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn counts(&self) -> Counts {
        Counts {
            started: self.started,
            reaped: self.reaped,
            unproven: self.unproven.len() as u64,
            live: self.live.len() as u64,
        }
    }

    /// Looks again at every unproven tree.
    fn prove(&mut self) {
        let before = self.unproven.len();
        self.unproven.retain_mut(|tree| !tree.is_empty());
        self.reaped += (before - self.unproven.len()) as u64;
    }
}

impl Unproven {
    /// A tree whose guard has just been started.
    pub(crate) fn new(guard: Guard) -> Self {
        Self {
            guard: Some(guard),
            end: None,
            identity: None,
            marker_dir: None,
        }
    }

    /// Wakes the guard, should the command have stopped it.
    pub(crate) fn wake(&self) {
        if let Some(guard) = &self.guard {
            guard.wake();
        }
    }

    /// Waits for the guard's end, at most so long.
    pub(crate) fn reap(&mut self, patience: Duration) -> Option<GuardEnd> {
        if self.end.is_none() {
            self.end = self.guard.as_ref().and_then(|guard| guard.reap(patience));
        }
        self.end
    }

    /// Whether the tree is proven empty; kills what its dead supervisors left where that can be identified.
    pub(crate) fn is_empty(&mut self) -> bool {
        if self.end.is_none() {
            self.wake();
            self.reap(Duration::ZERO);
        }
        match self.end {
            None => false,
            Some(GuardEnd::Exited(EXIT_EMPTY | EXIT_GUARDED | EXIT_UNUSED)) => true,
            Some(_) => self.by_marker(),
        }
    }

    /// The guard died in another way; its supervisor may live. The marker says what to look for.
    fn by_marker(&self) -> bool {
        let (Some(dir), Some(identity)) = (&self.marker_dir, self.identity) else {
            return false;
        };
        let file = Marker::file(dir, identity);
        let Ok(live) = marker::blocking(dir) else { return false };
        let Some(tree) = live.iter().find(|tree| tree.file == file) else {
            return true;
        };
        tree.kill();
        false
    }
}

/// Guards nobody waits for any more, kept only to be reaped when they end.
static ABANDONED: Mutex<Vec<Guard>> = Mutex::new(Vec::new());

pub(crate) fn reap_abandoned() {
    let mut guards = ABANDONED.lock().unwrap_or_else(PoisonError::into_inner);
    guards.retain(|guard| guard.reap(Duration::ZERO).is_none());
}

impl Drop for Unproven {
    fn drop(&mut self) {
        if let (None, Some(guard)) = (self.end, self.guard.take()) {
            ABANDONED.lock().unwrap_or_else(PoisonError::into_inner).push(guard);
            reap_abandoned();
        }
    }
}

/// The place of one command among its owner's; given back exactly once.
#[derive(Debug)]
pub(crate) struct Ticket {
    shared: Arc<Shared>,
    number: u64,
    settled: bool,
}

impl Ticket {
    /// Gives a command that is about to start what its owner has for it.
    pub(crate) fn admit(&self, spec: &mut Spec) -> Result<(), Error> {
        if self.shared.lock().closed {
            return Err(Error::Closed);
        }
        self.shared.give_temporary(spec)
    }

    pub(crate) fn mark_started(&self) {
        self.shared.lock().started += 1;
    }

    /// The command never started anything.
    pub(crate) fn forget(mut self) {
        self.settled = true;
        self.shared.lock().live.remove(&self.number);
        self.shared.changed.notify_all();
    }

    /// The command is over; `left` is its tree when that is not proven empty.
    pub(crate) fn settle(mut self, left: Option<Unproven>) {
        self.settled = true;
        let mut state = self.shared.lock();
        state.live.remove(&self.number);
        match left {
            Some(tree) => state.unproven.push(tree),
            None => state.reaped += 1,
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.settled {
            self.shared.lock().live.remove(&self.number);
            self.shared.changed.notify_all();
        }
    }
}
