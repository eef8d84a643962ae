//! The kernel as a Node addon.
//!
//! Owns the border between Node and [`zerostack`]: threads for calls, messages back to the event loop, and the end of an
//! environment. It knows nothing of what a call means beyond its name; the JavaScript beside it (`index.js`) is the API
//! that people use, and this crate is private to it.
//!
//! # How a call goes
//!
//! JavaScript gives a call a number and starts it with [`addon::Addon::call`]: a name and one JSON text. The call runs on
//! a thread of its own, which ends with it, so the event loop and libuv's pool are never held up. Its answer goes back as
//! one message. A call that needs JavaScript (a policy, an effect channel) sends a question and waits on its own thread.
//!
//! # How it ends
//!
//! When the environment goes (a process exit, the end of a worker) every call is cancelled and waited for, then every
//! kernel is closed; see [`mailbox`]. The library itself is never unloaded (`-z nodelete`): V8 keeps a thread.
#![cfg_attr(
    test,
    allow(
        dead_code,
        reason = "what JavaScript calls is exported by an attribute that is silent in Rust's own tests"
    )
)]

mod addon;
mod cell;
mod channel;
mod functions;
mod host;
mod mailbox;
mod mount;
mod options;
mod upkeep;
