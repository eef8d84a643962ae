//! The hub of ZeroStack: one cell, six operations, one terminal response.
//!
//! It composes the engines through the traits of `zero-contracts` and owns what none of them may: the frame, the
//! transaction of a cell, cancellation, processes, sessions and events.
//!
//! ```
//! use zerostack::contracts::response::Outcome;
//! use zerostack::{CellOptions, KernelConfig, StoreLocation, ZeroKernel};
//!
//! let root = tempfile::tempdir()?;
//! std::fs::write(root.path().join("a.txt"), "one\n")?;
//! let kernel = ZeroKernel::open(KernelConfig {
//!     store: StoreLocation::Transient, // without this line, one in the user's state directory
//!     ..KernelConfig::new(root.path())
//! })?;
//!
//! let cell = "await z.edit('a.txt', {find: 'one', replacement: input.to}); return z.read('a.txt')";
//! let response = kernel.execute_cell_with(
//!     cell,
//!     CellOptions { input: Some([("to".to_owned(), "two".into())].into()), ..CellOptions::default() },
//! );
//! assert_eq!(response.outcome, Outcome::Completed, "{:?}", response.error);
//! assert_eq!(response.value.map(|value| value.0), Some("two\n".into()));
//! assert_eq!(std::fs::read_to_string(root.path().join("a.txt"))?, "two\n");
//!
//! let failed = kernel.execute_cell("await z.edit('a.txt', {find: 'two', replacement: 'three'}); throw new Error('no')");
//! assert_eq!(failed.outcome, Outcome::Failed);
//! assert_eq!(std::fs::read_to_string(root.path().join("a.txt"))?, "two\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to go on
//!
//! | for | see |
//! | --- | --- |
//! | a workspace, its budgets, and what the host allows | [`KernelConfig`], [`Policy`], [`Effects`] |
//! | a cell: its input, deadline, cancellation and streamed output | [`CellOptions`], [`Interrupt`] |
//! | what came of it | [`contracts::ZeroKernelResponse`]; [`ZeroKernel::event`], [`ZeroKernel::log`], [`ZeroKernel::events`] |
//! | taking it back | [`ZeroKernel::undo`] |
//! | facts of the session | [`ZeroKernel::session`], [`Session`] |
//! | telling a model how to write cells | [`instructions`], [`schemas`] |
//!
//! # What a host needs beside the library
//!
//! `z.run` starts the program `zero-supervisor` (`cargo build -p zero-supervisor`), which owns the command. It is looked for
//! beside the host's executable and one directory above; [`KernelConfig::supervisor`] or the variable `ZEROSTACK_SUPERVISOR`
//! names another. All other operations do without. V8 comes as a library that cargo's build of the crate `v8` finds once
//! `cargo xtask setup` was run in ZeroStack's own workspace.

mod admission;
mod cell;
pub mod config;
mod engines;
pub mod evidence;
mod examine;
mod execute;
mod facts;
pub mod frame;
mod history;
mod instructions;
mod kernel;
mod location;
mod maintenance;
mod migrate;
mod ops;
pub mod outbox;
mod plan;
mod record;
mod recovery;
mod session;
mod sessions;
mod settle;
mod subscribe;
mod syntax;
mod targets;
mod typescript;
mod undo;

pub use admission::Interrupt;
pub use config::{
    Capture, CellOptions, Commands, Engines, ExternalReads, KernelConfig, OnOutput, Output, OutputStream, Policy,
    StoreLocation,
};
pub use examine::{Readable, StoreReport, examine};
pub use execute::plan_cell;
pub use history::{ChainVerification, StoreVerification};
pub use instructions::{instructions, schemas};
pub use kernel::{Leftovers, Status, ZeroKernel};
pub use maintenance::{GcOptions, GcReport};
pub use migrate::{Migrated, migrate};
pub use outbox::Effects;
pub use record::canonical_json;
pub use session::Session;
pub use sessions::LogEntry;
pub use subscribe::{EventStream, RecordedEvent};
pub use zero_contracts as contracts;
