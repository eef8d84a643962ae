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
        let name = self.temporary();
        let file = self
            .seam
            .create(self.tmp.as_fd(), name.as_bytes(), 0o600)
            .map_err(fail("writing to"))?;
        Ok(StoreWriter {
            store: Arc::clone(self),
            file: Some((file, name)),
            hasher: Hasher::new(),
            buffer: Vec::new(),
            size: 0,
            charged: 0,
        })
    }
}

/// Writes one object in pieces.
pub(crate) struct StoreWriter {
    store: Arc<Store>,
    file: Option<(OwnedFd, String)>,
    hasher: Hasher,
    buffer: Vec<u8>,
    size: u64,
    charged: u64,
}

impl StoreWriter {
    fn spill(&mut self) -> std::io::Result<()> {
        if let (Some((file, _)), false) = (&self.file, self.buffer.is_empty()) {
            self.store.seam.write(file.as_fd(), &self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
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
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= 1 << 18 {
            self.spill()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.spill()
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
        self.spill().map_err(fail("writing to"))?;
        let digest = self.hasher.finish();
        if let Some((_, name)) = self.file.take() {
            self.store.settle(&name, &digest)?;
        }
        let mut used = self.store.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = used.map(|n| n.saturating_sub(self.charged - self.size));
        drop(used);
        self.charged = 0;
        self.store.remember(digest, self.size);
        Ok((digest, self.size))
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        if let Some((_, name)) = self.file.take() {
            let _ = self.store.seam.unlink(self.store.tmp.as_fd(), name.as_bytes());
        }
        let mut used = self.store.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = used.map(|n| n.saturating_sub(self.charged));
    }
}
