//! `cargo +nightly fuzz run cell`: random programs over `z` on a kernel of their own.
#![no_main]

#[path = "../cell.rs"]
mod cell;
#[path = "../program.rs"]
mod program;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    static TARGET: OnceLock<cell::Target> = OnceLock::new();
    let target = TARGET.get_or_init(|| cell::Target::new(|_| {}));
    if let Err(problem) = target.check(&program::program(bytes)) {
        panic!("{problem}");
    }
});
