//! Looking at a store that may be damaged: what is lost, and what can still be read. Nothing is repaired or changed.

use std::collections::HashSet;
use std::path::PathBuf;

use serde::Serialize;
use zero_contracts::files::Damage;
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, FileEngine, ObjectStore, SessionName, ZeroKernelEvent};

use crate::config::{KernelConfig, Result};
use crate::facts::Facts;
use crate::kernel::resolve_root;
use crate::sessions::Sessions;
use crate::{engines, location};

/// How a store is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreReport {
    /// The store's directory.
    pub store: PathBuf,
    /// Whether nothing is damaged or lost.
    pub healthy: bool,
    /// What can still be read.
    pub readable: Readable,
    /// What cannot be had any more, in words.
    pub lost: Vec<String>,
    /// The parts that are damaged.
    pub damage: Vec<Damage>,
}

/// What of a store can still be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Readable {
    /// Sessions whose facts are whole.
    pub sessions: u64,
    /// Events that are whole.
    pub events: u64,
    /// Commits of files that the journal still holds, and that can be undone if what they replaced is whole, too.
    pub commits: u64,
}

/// Looks at the store of a workspace, also if a kernel would not open it. Reads every object and journal frame.
///
/// # Errors
/// `not_found` if there is no store; `cancelled` and `deadline` from the token. Damage is not an error but the answer.
#[tracing::instrument(level = "debug", skip_all, fields(root = %config.root.display()))]
pub fn examine(config: &KernelConfig, token: &CancelToken) -> Result<StoreReport> {
    let root = resolve_root(config)?;
    let store = location::named(&config.store, &root)?
        .filter(|store| store.is_dir())
        .ok_or_else(|| Error::new(ErrorKind::NotFound, "the workspace has no store"))?;
    let mut report = StoreReport {
        store: store.clone(),
        healthy: false,
        readable: Readable::default(),
        lost: Vec::new(),
        damage: Vec::new(),
    };
    let files = match engines::files(config, &root, &store) {
        Ok(files) => files,
        Err(error) => {
            report.lost.push(format!("the whole store, for this build: {error}"));
            return Ok(report);
        }
    };
    let sessions = Sessions::open(&store);
    if let Ok(applied) = sessions.as_ref().map_err(Error::clone).and_then(Sessions::applied) {
        // What they saw of the journal is missed there from now on, if it is gone.
        let _ = files.commits_after(applied);
    }
    report.damage = files.verify(token)?;
    report.damage.extend(crate::outbox::examine(&store));
    // Told once, in the words of whoever meets it first.
    let mut known = HashSet::new();
    report.look_at_journal(&*files, &mut known);
    match sessions {
        Ok(sessions) => report.look_at_sessions(&sessions, &*files.objects(), &mut known, token)?,
        Err(error) => report.lost.push(format!(
            "the names of the sessions, where they stand, and the events of cells that changed no file: {error}"
        )),
    }
    report.healthy = report.lost.is_empty() && report.damage.is_empty();
    Ok(report)
}

impl StoreReport {
    fn look_at_journal(&mut self, files: &dyn FileEngine, known: &mut HashSet<Digest>) {
        let commits = match files.commits_after(0) {
            Ok(commits) => commits,
            Err(error) => {
                self.lost
                    .push(format!("the means to undo, and to end what dead cells left: {error}"));
                return;
            }
        };
        self.readable.commits = commits.len() as u64;
        let objects = files.objects();
        for commit in commits {
            self.look_at_event(commit.seal.event, &commit.seal.session, &*objects, known);
        }
    }

    fn look_at_sessions(
        &mut self,
        sessions: &Sessions,
        objects: &dyn ObjectStore,
        known: &mut HashSet<Digest>,
        token: &CancelToken,
    ) -> Result<()> {
        let names = match sessions.names() {
            Ok(names) => names,
            Err(error) => {
                self.lost.push(format!("the names of the sessions: {error}"));
                return Ok(());
            }
        };
        for name in names {
            token.check()?;
            let facts = sessions.head(&name).and_then(|head| Facts::load(head.state, objects));
            match facts {
                Ok(_) => self.readable.sessions += 1,
                Err(error) => self.lost.push(format!("the facts of session {name}: {error}")),
            }
            match sessions.events(&name, u32::MAX) {
                Ok(events) => events
                    .into_iter()
                    .for_each(|entry| self.look_at_event(entry.handle.digest, &name, objects, known)),
                Err(error) => self.lost.push(format!("the list of events of session {name}: {error}")),
            }
        }
        Ok(())
    }

    fn look_at_event(
        &mut self,
        digest: Digest,
        session: &SessionName,
        objects: &dyn ObjectStore,
        known: &mut HashSet<Digest>,
    ) {
        if !known.insert(digest) {
            return;
        }
        let event = objects.get(&digest).and_then(|bytes| {
            serde_json::from_slice::<ZeroKernelEvent>(&bytes)
                .map_err(|e| Error::new(ErrorKind::Corrupt, format!("it is not an event: {e}")))
        });
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                self.lost
                    .push(format!("the event {digest} of session {session}: {error}"));
                return;
            }
        };
        self.readable.events += 1;
        let value = event.value.map(|value| ("value", value));
        let console = event.console.map(|console| ("console", console.digest));
        let streams = event.processes.iter().flat_map(|process| {
            [
                ("standard output", process.stdout.digest),
                ("standard error", process.stderr.digest),
            ]
        });
        for (what, object) in value.into_iter().chain(console).chain(streams) {
            if known.insert(object)
                && let Err(error) = objects.get(&object)
            {
                self.lost.push(format!(
                    "the {what} of cell {} in session {session}: {error}",
                    event.cell
                ));
            }
        }
    }
}
