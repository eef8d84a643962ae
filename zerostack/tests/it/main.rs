//! Integration tests of the hub crate: one binary, a module per subject.

mod frame_basics;
mod frame_faults;
mod frame_seal;
mod frame_soak;
mod frame_support;
mod frame_web;
