//! One stream of a command: stored whole, and projected as it passes, so that it need not be read again to be shown.
//!
//! Much of it is stored and projected on a thread of its own: who reads the command's pipe must not wait for it.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use zero_contracts::objects::ObjectWriter;
use zero_contracts::tokens::{ProjectText, ProjectedText, TextStream};
use zero_contracts::{CancelToken, Error, ErrorKind, Handle, Result};

use crate::kernel::Kernel;

/// From this size on a stream has a thread.
const MUCH: u64 = 1 << 20;

/// Bytes are handed over in pieces of about this size.
const PIECE: usize = 256 << 10;

/// Pieces that may wait for the thread.
const WAITING: usize = 4;

/// Takes what a command writes.
pub(super) struct Sink<'scope, 'env> {
    kernel: &'env Kernel,
    scope: &'scope Scope<'scope, 'env>,
    taken: u64,
    keeper: Keeper<'scope>,
}

/// What became of it.
pub(super) struct Shown {
    pub handle: Handle,
    pub projected: ProjectedText,
}

/// Stores and projects.
struct Kept<'a> {
    writer: Box<dyn ObjectWriter>,
    projection: Box<dyn TextStream + 'a>,
}

impl Kept<'_> {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)?;
        self.projection.take(bytes);
        Ok(())
    }
}

/// Who does it.
enum Keeper<'scope> {
    Here(Kept<'scope>),
    Aside(Aside<'scope>),
    /// It failed, and this was told.
    Gone,
}

struct Aside<'scope> {
    gathered: Vec<u8>,
    pieces: SyncSender<Vec<u8>>,
    /// Pieces come back to be used again.
    used: Receiver<Vec<u8>>,
    thread: ScopedJoinHandle<'scope, io::Result<Kept<'scope>>>,
}

impl<'scope> Aside<'scope> {
    /// Hands over what was gathered; false if nobody takes it any more.
    fn hand_over(&mut self) -> bool {
        let mut next = self.used.try_recv().unwrap_or_default();
        next.clear();
        self.pieces.send(std::mem::replace(&mut self.gathered, next)).is_ok()
    }

    /// Waits for the thread to be done with everything.
    fn end(mut self) -> io::Result<Kept<'scope>> {
        self.hand_over();
        drop(self.pieces);
        self.thread.join().unwrap_or_else(|_| {
            Err(io::Error::other(
                "the thread that stores the output of a command panicked",
            ))
        })
    }
}

impl<'scope, 'env> Sink<'scope, 'env> {
    /// Opens one of which at most `budget` tokens are shown.
    pub fn open(kernel: &'env Kernel, scope: &'scope Scope<'scope, 'env>, budget: u64) -> Result<Self> {
        let how = ProjectText {
            budget,
            ..ProjectText::default()
        };
        Ok(Self {
            kernel,
            scope,
            taken: 0,
            keeper: Keeper::Here(Kept {
                writer: kernel.objects.writer()?,
                projection: kernel.tokens.project_stream(&how),
            }),
        })
    }

    /// Stores the whole and says what is shown of it.
    pub fn finish(self, token: &CancelToken) -> Result<Shown> {
        let kept = match self.keeper {
            Keeper::Here(kept) => kept,
            Keeper::Aside(aside) => aside.end().map_err(|e| storing(&e))?,
            Keeper::Gone => return Err(Error::new(ErrorKind::Io, "the output of a command could not be stored")),
        };
        let (object, _) = kept.writer.finish()?;
        Ok(Shown {
            handle: Handle::blob(object),
            projected: kept.projection.finish(&object, &*self.kernel.objects, token)?,
        })
    }

    /// Has the rest stored and projected by a thread; where there can be none, it goes on here.
    fn step_aside(&mut self) {
        let Keeper::Here(kept) = std::mem::replace(&mut self.keeper, Keeper::Gone) else {
            return;
        };
        let (pieces, taken) = sync_channel::<Vec<u8>>(WAITING);
        let (give_back, used) = sync_channel(WAITING + 1);
        // The thread gets what it works on when it is there: it comes back if it cannot be started.
        let (hand, get) = sync_channel::<Kept<'scope>>(1);
        let work = move || {
            let mut kept = get.recv().map_err(io::Error::other)?;
            for piece in taken {
                kept.take(&piece)?;
                // Nobody minds if it is not wanted.
                let _ = give_back.try_send(piece);
            }
            Ok(kept)
        };
        let started = Builder::new()
            .name("zero-output".to_owned())
            .spawn_scoped(self.scope, work);
        self.keeper = match started {
            Ok(thread) => {
                // It waits for this one value.
                let _ = hand.send(kept);
                Keeper::Aside(Aside {
                    gathered: Vec::with_capacity(PIECE),
                    pieces,
                    used,
                    thread,
                })
            }
            Err(_) => Keeper::Here(kept),
        };
    }
}

/// The error of a stream that could not be stored.
pub(super) fn storing(e: &io::Error) -> Error {
    if let Some(told) = e.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        return told.clone();
    }
    Error::from_io(e, "storing the output of a command")
}

impl Write for Sink<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.taken < MUCH && self.taken + bytes.len() as u64 >= MUCH {
            self.step_aside();
        }
        self.taken += bytes.len() as u64;
        match &mut self.keeper {
            Keeper::Here(kept) => kept.take(bytes)?,
            Keeper::Aside(aside) => {
                aside.gathered.extend_from_slice(bytes);
                if aside.gathered.len() >= PIECE
                    && !aside.hand_over()
                    && let Keeper::Aside(aside) = std::mem::replace(&mut self.keeper, Keeper::Gone)
                {
                    // It ended early, so it failed.
                    aside.end()?;
                    return Err(io::Error::other("the output of a command is not taken any more"));
                }
            }
            Keeper::Gone => return Err(io::Error::other("the output of a command is not taken any more")),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
