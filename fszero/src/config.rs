//! How an engine is opened.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use zero_contracts::files::Durability;

use crate::seam::Gate;

/// How [`FsZero::open`](crate::FsZero::open) opens a workspace.
#[derive(Clone)]
pub struct FsConfig {
    /// The workspace root: a directory that exists.
    pub root: PathBuf,
    /// The store: a directory outside the root, made if absent. One store serves one root.
    pub store: PathBuf,
    /// What survives a crash.
    pub durability: Durability,
    /// Whether the store outlives its engine. One that does not is never flushed, whatever the durability: after a loss of
    /// power nobody would look for it. Files of the workspace are made durable all the same.
    pub lasting: bool,
    /// Bytes that objects may take; more is `budget`. Counted approximately between collections.
    pub quota: u64,
    /// Most tracked files for the capture tier `baseline`; above it is `unattributedWrites`.
    pub capture_files: u64,
    /// Most tracked bytes for the capture tier `baseline`.
    pub capture_bytes: u64,
    /// Collection spares objects younger than this: they may belong to work that holds no lock yet.
    pub young: Duration,
    /// Stands before every mutating system call: for fault injection.
    pub gate: Option<Arc<dyn Gate>>,
}

impl FsConfig {
    /// Defaults: durability `power`, a store that lasts, 10 GiB, 200,000 files and 4 GiB for capture, objects young for an
    /// hour.
    pub fn new(root: impl Into<PathBuf>, store: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            store: store.into(),
            durability: Durability::Power,
            lasting: true,
            quota: 10 << 30,
            capture_files: 200_000,
            capture_bytes: 4 << 30,
            young: Duration::from_secs(3600),
            gate: None,
        }
    }

    /// Sets the durability.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the gate.
    #[must_use]
    pub fn gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.gate = Some(gate);
        self
    }
}
