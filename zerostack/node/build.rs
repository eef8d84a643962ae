//! Link arguments: Node's own, and what keeps this library's V8 apart from Node's.
//!
//! Which symbols are exported is decided by `cargo xtask node`, which stands in for the linker: rustc would export every
//! `no_mangle` function of every dependency from a `cdylib`.

/// Initialises a thread-local of V8 that needs no initialisation: every reference is weak and it is defined nowhere.
/// Left undefined it would be bound to a V8 in the host's process.
const NO_INITIALISER: &str = "_ZTHN2v88internal12trap_handler16TrapHandlerGuard10is_active_E";

fn main() {
    napi_build::setup();
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--defsym={NO_INITIALISER}=0");
        // What this library has, it uses itself.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    }
}
