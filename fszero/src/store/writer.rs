//! Storing an object of any size in pieces.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, PoisonError};

use zero_contracts::objects::ObjectWriter;
use zero_contracts::{Digest, Error, Hasher};

use super::{Store, fail};

impl Store {
    /// Opens a writer; [`writer`](zero_contracts::ObjectStore::writer) for a store behind an `Arc`.
    pub fn writer_of(self: &Arc<Self>) -> Result<StoreWriter, Error> {
        Ok(StoreWriter {
            store: Arc::clone(self),
            file: None,
            hasher: Hasher::new(),
            buffer: Vec::new(),
            size: 0,
            charged: 0,
        })
    }
}

/// Writes one object in pieces. What fits into the buffer makes no file of its own until it is finished.
pub(crate) struct StoreWriter {
    store: Arc<Store>,
    file: Option<(OwnedFd, String)>,
    hasher: Hasher,
    buffer: Vec<u8>,
    size: u64,
    charged: u64,
}

/// Pieces are gathered up to this size.
const GATHERED: usize = 256 << 10;

/// A piece of this size is written as it comes, rather than copied.
const LARGE: usize = 64 << 10;

impl StoreWriter {
    fn put_out(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if self.file.is_none() {
            let name = self.store.temporary();
            let made = self.store.seam.create(self.store.tmp.as_fd(), name.as_bytes(), 0o600)?;
            self.file = Some((made, name));
        }
        match &self.file {
            Some((file, _)) => self.store.seam.write(file.as_fd(), bytes),
            None => Ok(()),
        }
    }

    fn spill(&mut self) -> std::io::Result<()> {
        if !self.buffer.is_empty() {
            let mut buffer = std::mem::take(&mut self.buffer);
            self.put_out(&buffer)?;
            buffer.clear();
            self.buffer = buffer;
        }
        Ok(())
    }

    /// Gives back what was charged and not used.
    fn discharge(&mut self, used: u64) {
        let mut total = self.store.used.lock().unwrap_or_else(PoisonError::into_inner);
        *total = total.map(|n| n.saturating_sub(self.charged.saturating_sub(used)));
        self.charged = 0;
    }
}

impl Write for StoreWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.size += bytes.len() as u64;
        if self.size > self.charged {
            // A mebibyte at a time: the quota is no exact science.
            let more = (self.size - self.charged).max(1 << 20);
            self.store.charge(more).map_err(std::io::Error::other)?;
            self.charged += more;
        }
        self.hasher.update(bytes);
        if bytes.len() >= LARGE {
            self.spill()?;
            self.put_out(bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
            if self.buffer.len() >= GATHERED {
                self.spill()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        // Nobody sees anything of it before it is finished.
        Ok(())
    }
}

/// Takes the contracts' error out of an I/O error that carries one.
pub(crate) fn from_writer(error: std::io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => fail("writing to")(error),
    }
}

impl ObjectWriter for StoreWriter {
    fn finish(mut self: Box<Self>) -> Result<(Digest, u64), Error> {
        if self.file.is_none() {
            self.discharge(0);
            return Ok((self.store.put(&self.buffer)?, self.size));
        }
        self.spill().map_err(fail("writing to"))?;
        let digest = self.hasher.finish();
        let Some((_, name)) = self.file.take() else {
            return Err(fail("writing to")(std::io::Error::other("its file is gone")));
        };
        let new = self.store.settle(&name, &digest)?;
        self.discharge(if new { self.size } else { 0 });
        self.store.remember(digest, self.size);
        Ok((digest, self.size))
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        if let Some((_, name)) = self.file.take() {
            let _ = self.store.seam.unlink(self.store.tmp.as_fd(), name.as_bytes());
        }
        self.discharge(0);
    }
}
