//! The engine over small trees in memory.

#[cfg(feature = "c")]
mod c;
#[cfg(feature = "cpp")]
mod cpp;
mod fixtures;
#[cfg(feature = "go")]
mod go;
#[cfg(feature = "java")]
mod java;
mod pattern;
mod persisted;
mod random;
mod rust;
mod rust_rules;
mod semantic;
mod tokens;
mod trees;
mod typescript_python;
