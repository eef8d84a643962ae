//! Structural truth about a source tree, with stated coverage and freshness. See the crate's README for a first program.

mod answer;
pub mod code;
mod cursor;
mod engine;
pub mod facts;
mod facts_builder;
pub mod language;
mod outline;
pub mod parse;
mod pool;
pub mod program;
mod scope;
mod structure;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod text;
mod tree;
#[cfg(feature = "truth")]
pub mod truth;
mod world;

#[cfg(feature = "rust")]
pub mod rust;

pub use engine::{GraphConfig, GraphZero};
