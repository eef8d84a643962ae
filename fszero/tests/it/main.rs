//! Integration tests of the engine, one binary.

mod support;

mod fields;
