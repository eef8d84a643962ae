//! Integration tests of the engine, one binary.

mod gates;
mod keeping;
mod support;

mod fields;
mod model;
mod sweep;
