//! The hub of ZeroStack: one cell, six operations, one terminal response.
//!
//! It composes the engines through the traits of `zero-contracts` and owns what none of them may: the frame, the
//! transaction of a cell, cancellation, processes, sessions and events. See [`ZeroKernel`].

#[cfg(feature = "hub")]
mod cell;
#[cfg(feature = "hub")]
pub mod config;
#[cfg(feature = "hub")]
mod engines;
#[cfg(feature = "hub")]
mod facts;
pub mod frame;
#[cfg(feature = "hub")]
mod kernel;
#[cfg(feature = "hub")]
mod ops;
#[cfg(feature = "hub")]
mod record;
#[cfg(feature = "hub")]
mod sessions;
#[cfg(feature = "hub")]
mod settle;
#[cfg(feature = "hub")]
mod targets;

#[cfg(feature = "hub")]
pub use config::{CellOptions, Commands, Engines, ExternalReads, KernelConfig, Policy, StoreLocation};
#[cfg(feature = "hub")]
pub use kernel::{Input, Status, ZeroKernel};
#[cfg(feature = "hub")]
pub use record::canonical_json;
#[cfg(feature = "hub")]
pub use sessions::EventEntry;
#[cfg(feature = "hub")]
pub use zero_contracts as contracts;
