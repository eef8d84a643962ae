//! Under construction.

pub mod frame;
