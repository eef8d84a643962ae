//! Objects in a map.

use std::collections::HashMap;
use std::io::{self, Cursor, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zero_contracts::objects::ObjectWriter;
use zero_contracts::{ByteRange, Digest, Error, ErrorKind, ObjectStore};

use crate::suites::objects::Objects;

type Map = Arc<Mutex<HashMap<Digest, Vec<u8>>>>;

/// An object store in memory.
#[derive(Clone, Default)]
pub struct MemoryObjects(Map);

fn lock(map: &Map) -> MutexGuard<'_, HashMap<Digest, Vec<u8>>> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryObjects {
    /// An object's bytes as they are, verified or not.
    pub fn raw(&self, digest: &Digest) -> Option<Vec<u8>> {
        lock(&self.0).get(digest).cloned()
    }

    /// Every digest.
    pub fn digests(&self) -> Vec<Digest> {
        lock(&self.0).keys().copied().collect()
    }

    /// Removes an object; gives its size.
    pub fn remove(&self, digest: &Digest) -> Option<u64> {
        lock(&self.0).remove(digest).map(|bytes| bytes.len() as u64)
    }

    fn find(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        self.raw(digest)
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no object {digest}")))
    }
}

impl Objects for MemoryObjects {
    fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::new(self.clone())
    }

    fn damage(&self, digest: &Digest) {
        if let Some(byte) = lock(&self.0).get_mut(digest).and_then(|bytes| bytes.last_mut()) {
            *byte ^= 1;
        }
    }
}

impl ObjectStore for MemoryObjects {
    fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        let digest = Digest::of(bytes);
        lock(&self.0).insert(digest, bytes.to_vec());
        Ok(digest)
    }

    fn writer(&self) -> Result<Box<dyn ObjectWriter>, Error> {
        Ok(Box::new(Writer(self.clone(), Vec::new())))
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let bytes = self.find(digest)?;
        if Digest::of(&bytes) == *digest {
            Ok(bytes)
        } else {
            Err(Error::new(ErrorKind::Corrupt, format!("object {digest} is damaged")))
        }
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, Error> {
        let bytes = self.find(digest)?;
        let whole = Digest::of(&bytes) == *digest;
        Ok(Box::new(Verified(Cursor::new(bytes), whole)))
    }

    fn get_range(&self, digest: &Digest, range: ByteRange) -> Result<Vec<u8>, Error> {
        let bytes = self.find(digest)?;
        let range = range.within(bytes.len() as u64)?;
        Ok(bytes[range.start() as usize..range.end() as usize].to_vec())
    }

    fn size(&self, digest: &Digest) -> Result<Option<u64>, Error> {
        Ok(self.raw(digest).map(|bytes| bytes.len() as u64))
    }
}

struct Verified(Cursor<Vec<u8>>, bool);

impl Read for Verified {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(buffer)?;
        if n == 0 && !buffer.is_empty() && !self.1 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the object is damaged"));
        }
        Ok(n)
    }
}

struct Writer(MemoryObjects, Vec<u8>);

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ObjectWriter for Writer {
    fn finish(self: Box<Self>) -> Result<(Digest, u64), Error> {
        Ok((self.0.put(&self.1)?, self.1.len() as u64))
    }
}
