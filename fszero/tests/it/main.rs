//! Integration tests of the engine, one binary.

// Helpers outside test functions fail a test by panicking, too.
#![allow(clippy::unwrap_used)]

mod captured;
mod fields;
mod forward;
mod gates;
mod hostile;
mod keeping;
mod losses;
mod model;
mod private;
mod repeated;
mod scenarios;
mod support;
mod sweep;
mod transient;
mod undo;
mod writing;
