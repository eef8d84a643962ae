//! A handle that ends one running command from any thread.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use rustix::event::{EventfdFlags, eventfd};

use crate::error::Error;
use crate::protocol::EndReason;

/// Ends one command. `Send + Sync`, cheap to clone. The first reason stays.
#[derive(Debug, Clone)]
pub struct Canceller(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    wake: OwnedFd,
    reason: OnceLock<EndReason>,
}

impl Canceller {
    pub(crate) fn new() -> Result<Self, Error> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| Error::io("making an event descriptor")(error.into()))?;
        Ok(Self(Arc::new(Inner {
            wake,
            reason: OnceLock::new(),
        })))
    }

    /// Asks for the end of the command; returns at once. After its end this does nothing.
    pub fn cancel(&self, reason: EndReason) {
        if self.0.reason.set(reason).is_ok() {
            // A full counter is readable too.
            let _ = rustix::io::write(&self.0.wake, &1_u64.to_ne_bytes());
        }
    }

    pub(crate) fn reason(&self) -> Option<EndReason> {
        self.0.reason.get().copied()
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }
}
