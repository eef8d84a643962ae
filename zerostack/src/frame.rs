//! The frame: one cell, one thread, one V8 isolate, nothing left afterwards.
//!
//! Owns everything that touches JavaScript at run time: creating the isolate from the startup snapshot, sealing it, running
//! the cell, carrying `z` calls to a [`CallHandler`] and their answers back, the budgets, and the thread. It knows nothing
//! of engines, sessions or transactions, and a [`CallHandler`] knows nothing of V8.
//!
//! # How it is built
//!
//! [`run`] starts a thread and watches it. The thread makes a `JsRuntime` from the snapshot of `zero-frame-snapshot`, seals
//! its context, compiles the cell as the body of a strict async function and drives it: microtasks, timers and the futures
//! of pending calls, until the cell settles or cannot settle any more. deno_core's own event loop and ops are not used at
//! run time: their promises go through prototypes that a cell can replace. Every built-in op is disabled as well.
//!
//! The only host function is one native closure over numbers (`native.rs`); the cell never sees it. Values leave as JSON
//! text and come back as values parsed from JSON.
//!
//! # What a frame guarantees
//!
//! * The cell ends within its budgets, plus what one native call of V8 takes to notice a termination.
//! * After [`run`] returns, the thread, the isolate and the runtime's blocking threads are gone, unless
//!   [`FrameOutcome::given_up`] says that V8 ran out of memory for good: then the thread is parked for ever and counted by
//!   [`frames_given_up`].
//! * A pending call is dropped when the cell settles, and named in [`FrameOutcome::pending`].
//!
//! # What a cell can rely on
//!
//! * A promise that is rejected and that nothing handles by the time the microtasks are done fails the cell, also when the
//!   cell itself returned a value.
//! * A cell that waits for something that can never happen fails at once.

mod convert;
mod driver;
mod failure;
mod isolate;
mod limits;
mod native;
mod place;
mod platform;
mod spec;
mod surface;
mod watch;
mod web;

pub use limits::frames_given_up;
pub use spec::{
    CallHandler, CallReply, CallRequest, ConsoleLevel, ConsoleLine, FrameBudgets, FrameOutcome, FrameSpec, FrameUsage,
};
pub use watch::run;
