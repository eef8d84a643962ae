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
//! * The cell ends within its budgets, plus what one native call of V8 takes to notice a termination: two seconds of CPU time
//!   at most, after which the frame is given up.
//! * After [`run`] returns, the thread, the isolate and the runtime's blocking threads are gone, unless
//!   [`FrameOutcome::given_up`] says that the frame was given up: [`frames_given_up`] counts it until its thread has ended,
//!   which is never if V8 ran out of memory for good.
//! * A pending call is dropped when the cell settles, and named in [`FrameOutcome::pending`].
//!
//! # What a cell can rely on
//!
//! * A promise that is rejected and that nothing handles by the time the microtasks are done fails the cell, also when the
//!   cell itself returned a value.
//! * A cell that waits for something that can never happen fails at once.
//!
//! # Limits
//!
//! * Resizable array buffers are refused, not counted. Callbacks of a `FinalizationRegistry` never run.
//! * V8 ends itself over an array longer than it can make: the frame is given up as well. Its breakpoint is taken by the
//!   process's handler of `SIGTRAP` (`trap`).
//! * One large young object at a time is not held to the heap budget; the next collection ends the cell.
//! * Texts beyond 64 Mi characters do not leave V8, URLs and search parameters beyond 2 Mi neither; `structuredClone` refuses
//!   properties with getters.
//! * One native call that wants more than twice the heap budget at once (`Array(1e9).fill(0)`) ends in V8's fatal
//!   out-of-memory: the frame is given up with what it holds.
//! * Intl objects lie outside of the heap. A cell may make 2,000; what `toLocaleString` makes for itself is not counted and goes
//!   with the next collection (seen: 150 MB after a second of nothing else).
//! * Out-of-memory on V8's own helper thread parks that thread; later frames then do without it.
//! * The watchdog looks at the host's token every 5 ms. CPU time is read from the thread's clock, which is Linux's way.

mod clone;
mod convert;
mod driver;
mod failure;
mod isolate;
mod keeper;
mod limits;
mod native;
mod place;
mod platform;
mod spec;
mod surface;
mod trap;
mod watch;
mod web;

pub use limits::frames_given_up;
pub use spec::{
    CallHandler, CallReply, CallRequest, ConsoleLevel, ConsoleLine, FrameBudgets, FrameOutcome, FrameSpec, FrameUsage,
};
pub use watch::run;
