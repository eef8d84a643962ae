//! The hub of ZeroStack: one cell, six operations, one terminal response.
//!
//! It composes the engines through the traits of `zero-contracts` and owns what none of them may: the frame, the
//! transaction of a cell, cancellation, processes, sessions and events. See [`ZeroKernel`].

mod admission;
mod cell;
pub mod config;
mod engines;
mod execute;
mod facts;
pub mod frame;
mod instructions;
mod kernel;
mod location;
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
pub use execute::plan_cell;
pub use instructions::instructions;
pub use kernel::{Leftovers, Status, ZeroKernel};
pub use outbox::Effects;
pub use record::canonical_json;
pub use session::Session;
pub use sessions::EventEntry;
pub use subscribe::{EventStream, RecordedEvent};
pub use zero_contracts as contracts;
