//! Owns the processes of commands: nothing a command starts outlives it, and nothing it prints is lost.
//!
//! ```no_run
//! use zero_supervisor::{Io, Processes, Spec, locate};
//!
//! let processes = Processes::new(locate::locate(None)?);
//! let running = processes.spawn(Spec::shell("echo hi; sleep 100 &", "/tmp"))?;
//! let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
//! let outcome = running.drive(Io::new(&mut stdout, &mut stderr));
//! assert_eq!(stdout, b"hi\n"); // at once: the background process is ended with the command
//! assert!(outcome.cleanup.is_clean());
//! # Ok::<(), zero_supervisor::Error>(())
//! ```
//!
//! One small single-threaded program, `zero-supervisor`, is started per command and lives as long as the command's tree.
//! This crate is both that program ([`owner`]) and the host's side of it: [`Processes`] starts commands, [`Running`] moves
//! their bytes, [`Outcome`] says what came of them, [`lease`] excludes other writers of a workspace until the last tree is
//! gone, [`marker`] proves it gone when a supervisor was killed. It has no engine, no async runtime and no thread of its own.
//!
//! Linux only, 5.9 or newer (5.14 for the cgroup tier). The README lists tiers, promises and limits.
#![cfg(target_os = "linux")]

mod canceller;
mod cgroup;
mod child;
pub mod confinement;
pub mod environment;
mod error;
mod identity;
pub mod lease;
pub mod locate;
pub mod marker;
mod obstacles;
mod outcome;
#[doc(hidden)]
pub mod owner;
mod processes;
pub mod protocol;
mod running;
mod spec;
mod start;
mod sys;
mod temporary;

pub use canceller::Canceller;
pub use error::Error;
pub use identity::Identity;
pub use lease::Lease;
pub use outcome::{Cleanup, Outcome, Stream, StreamBytes, Termination};
pub use processes::{Counts, Processes};
pub use protocol::{CountTier, EndReason, FileTier, Tiers, TreeTier};
pub use running::{Io, OnOutput, Running};
pub use spec::{Files, Limits, Mounted, Overlay, Spec, Stdin, Tree, View};
pub use start::Ready;
