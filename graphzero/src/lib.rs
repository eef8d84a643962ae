#![doc = include_str!("../README.md")]

mod answer;
pub mod code;
mod cursor;
#[allow(dead_code)] // a build without languages of this family
pub mod declared;
mod engine;
pub mod facts;
mod facts_builder;
pub mod language;
#[allow(dead_code)] // a build without languages that infer
mod memo;
#[allow(dead_code)] // a build without languages of this family
pub mod objects;
mod outline;
pub mod parse;
mod persist;
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

#[cfg(feature = "c")]
pub mod c;
#[cfg(feature = "go")]
pub mod go;
#[cfg(feature = "java")]
pub mod java;
#[cfg(feature = "python")]
pub mod python;
#[cfg(feature = "rust")]
pub mod rust;
#[cfg(feature = "typescript")]
pub mod typescript;

pub use engine::{GraphConfig, GraphZero};
