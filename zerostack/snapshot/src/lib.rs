//! The V8 startup snapshot of a frame: a context that already holds the JavaScript side of `z` and the small web
//! interfaces.
//!
//! It is a crate of its own so that its build script can use deno_core to make the snapshot while `zerostack` uses
//! deno_core to run it, and both share one compiled deno_core (see the profiles and the resolver in the workspace manifest).
//!
//! Owns the scripts in `js/`. It runs nothing: sealing a context and everything native is the frame's.

mod extension;

pub use extension::EXTENSION;

/// The snapshot, for `deno_core::RuntimeOptions::startup_snapshot`.
///
/// The restored global object has one property more than deno_core's own: `__zero`, whose `exports` the frame takes
/// before it seals the context.
pub static FRAME_SNAPSHOT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/frame.snapshot"));
