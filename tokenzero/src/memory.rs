//! An object store in memory: for programs that use this crate without a store, for tests and for examples.

use std::collections::HashMap;
use std::io::{Cursor, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zero_contracts::objects::ObjectWriter;
use zero_contracts::{ByteRange, Digest, Error, ErrorKind, ObjectStore};

type Objects = HashMap<Digest, Arc<[u8]>>;

/// Objects in memory, for as long as it lives. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<Objects>>);

impl MemoryStore {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn objects(&self) -> MutexGuard<'_, Objects> {
        // Every change is one insertion, so a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, digest: &Digest) -> Result<Arc<[u8]>, Error> {
        let found = self.objects().get(digest).cloned();
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no object {digest}")))
    }
}

impl ObjectStore for MemoryStore {
    fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        let digest = Digest::of(bytes);
        self.objects().entry(digest).or_insert_with(|| bytes.into());
        Ok(digest)
    }

    fn writer(&self) -> Result<Box<dyn ObjectWriter>, Error> {
        Ok(Box::new(Writer {
            store: self.clone(),
            bytes: Vec::new(),
        }))
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        self.find(digest).map(|bytes| bytes.to_vec())
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, Error> {
        Ok(Box::new(Cursor::new(self.find(digest)?)))
    }

    fn get_range(&self, digest: &Digest, range: ByteRange) -> Result<Vec<u8>, Error> {
        let bytes = self.find(digest)?;
        let range = range.within(bytes.len() as u64)?;
        Ok(bytes[range.start() as usize..range.end() as usize].to_vec())
    }

    fn size(&self, digest: &Digest) -> Result<Option<u64>, Error> {
        Ok(self.objects().get(digest).map(|bytes| bytes.len() as u64))
    }
}

struct Writer {
    store: MemoryStore,
    bytes: Vec<u8>,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl ObjectWriter for Writer {
    fn finish(self: Box<Self>) -> Result<(Digest, u64), Error> {
        Ok((self.store.put(&self.bytes)?, self.bytes.len() as u64))
    }
}
