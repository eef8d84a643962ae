//! The hub of ZeroStack: one cell, six operations, one terminal response.
//!
//! It composes the engines through the traits of `zero-contracts` and owns what none of them may: the frame, the
//! transaction of a cell, cancellation, processes, sessions and events. See [`ZeroKernel`].

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
pub use instructions::{instructions, schemas};
pub use kernel::{Leftovers, Status, ZeroKernel};
pub use maintenance::{GcOptions, GcReport};
pub use migrate::{Migrated, migrate};
pub use outbox::Effects;
pub use record::canonical_json;
pub use session::Session;
pub use sessions::EventEntry;
pub use subscribe::{EventStream, RecordedEvent};
pub use zero_contracts as contracts;
