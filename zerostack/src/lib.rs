//! The hub of ZeroStack: one cell, six operations, one terminal response.
//!
//! It composes the engines through the traits of `zero-contracts` and owns what none of them may: the frame, the
//! transaction of a cell, cancellation, processes, sessions and events. See [`ZeroKernel`].

mod cell;
pub mod config;
mod engines;
mod facts;
pub mod frame;
mod kernel;
mod ops;
mod plan;
mod record;
mod sessions;
mod settle;
mod syntax;
mod targets;
mod typescript;

pub use config::{CellOptions, Commands, Engines, ExternalReads, KernelConfig, Policy, StoreLocation};
pub use kernel::{Status, ZeroKernel};
pub use record::canonical_json;
pub use sessions::EventEntry;
pub use zero_contracts as contracts;
