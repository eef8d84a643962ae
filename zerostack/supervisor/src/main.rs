//! `zero-supervisor`: owns the processes of one command for one host. Not for people: it speaks a binary protocol on
//! standard input and is started by the `zero_supervisor` library.
//!
//! It has no Rust `main`: what the standard library prepares for one (a guard page for overflow reports, an alternative
//! signal stack, reading its own memory map) costs a tenth of a millisecond for every command, and nothing here needs it.
#![no_main]

use std::ffi::{c_char, c_int};

// SAFETY: the C runtime's entry point, with its signature; no other `main` is linked.
#[unsafe(no_mangle)]
extern "C" fn main(_count: c_int, _arguments: *const *const c_char) -> c_int {
    zero_supervisor::owner::run()
}
