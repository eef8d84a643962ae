//! The engine over small trees in memory.

mod fixtures;
mod rust;
mod trees;
mod typescript_python;
