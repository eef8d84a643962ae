//! A simple engine in memory for every trait.

mod edits;
pub mod files;
pub mod objects;
pub mod structure;
pub(crate) mod text;
pub mod tokens;
pub mod tree;
