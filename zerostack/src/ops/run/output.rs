//! One stream of a command: stored whole, and projected as it passes, so that it need not be read again to be shown.

use std::io::{self, Write};

use zero_contracts::objects::ObjectWriter;
use zero_contracts::tokens::{ProjectText, ProjectedText, TextStream};
use zero_contracts::{CancelToken, Handle, Result};

use crate::kernel::Kernel;

/// Takes what a command writes.
pub(super) struct Sink<'a> {
    kernel: &'a Kernel,
    writer: Box<dyn ObjectWriter>,
    projection: Box<dyn TextStream + 'a>,
}

/// What became of it.
pub(super) struct Shown {
    pub handle: Handle,
    pub projected: ProjectedText,
}

impl<'a> Sink<'a> {
    /// Opens one of which at most `budget` tokens are shown.
    pub fn open(kernel: &'a Kernel, budget: u64) -> Result<Self> {
        let how = ProjectText {
            budget,
            ..ProjectText::default()
        };
        Ok(Self {
            kernel,
            writer: kernel.objects.writer()?,
            projection: kernel.tokens.project_stream(&how),
        })
    }

    /// Stores the whole and says what is shown of it.
    pub fn finish(self, token: &CancelToken) -> Result<Shown> {
        let (object, _) = self.writer.finish()?;
        Ok(Shown {
            handle: Handle::blob(object),
            projected: self.projection.finish(&object, &*self.kernel.objects, token)?,
        })
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.writer.write(bytes)?;
        self.projection.take(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
