//! Suites for the engine contracts.
//!
//! Whoever vendors one engine, or writes another, runs the suite of its trait against it: [`suites`] needs neither the hub
//! nor V8, and knows nothing of the shipped engines. A suite's subject makes fresh engines and lets the suite act on what
//! lies behind them, as somebody else would.
//!
//! [`models`] holds a deliberately simple engine in memory for every trait: it shows that the suites ask for nothing but
//! the contract. [`faults`] seeds defects into those, one at a time; every one must be caught, which shows that the suites
//! can fail.
//!
//! ```
//! use zero_conformance::{models::objects::MemoryObjects, suites};
//!
//! let report = suites::objects::run(&|| Box::new(MemoryObjects::default()));
//! assert!(report.failures().is_empty(), "{report}");
//! ```

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod faults;
pub mod models;
mod report;
pub mod suites;
pub mod tree;

pub use report::{Check, Outcome, Report};
