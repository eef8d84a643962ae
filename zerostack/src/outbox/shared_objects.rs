//! Objects in any store that the crate `object_store` reaches: what hosts without a common disk read by digest.
//!
//! An object lies at `PREFIX/ab/cdef…`, its digest's hexadecimal digits, as its plain bytes.

use std::future::Future;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use object_store::path::Path;
use object_store::{ObjectStore as Remote, ObjectStoreExt};
use zero_contracts::objects::ObjectWriter;
use zero_contracts::{ByteRange, Digest, Error, ErrorKind, Hasher, ObjectStore, Result};

/// Bytes that are read or written at once.
const PART: usize = 8 << 20;

/// [`ObjectStore`] over a store of the crate `object_store`. Cheap to clone. Calls block; nothing of it runs between them.
#[derive(Clone)]
pub struct SharedObjects(Arc<Shared>);

struct Shared {
    remote: Arc<dyn Remote>,
    prefix: Path,
    /// One runtime for all calls: a client's connections belong to the runtime that opened them.
    runtime: Mutex<tokio::runtime::Runtime>,
}

impl Shared {
    fn wait<T: Send>(&self, work: impl Future<Output = T> + Send) -> T {
        let wait = || {
            let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
            runtime.block_on(work)
        };
        if tokio::runtime::Handle::try_current().is_err() {
            return wait();
        }
        // The caller is inside a runtime, which another must not be entered from.
        match std::thread::scope(|scope| scope.spawn(wait).join()) {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    fn path(&self, digest: &Digest) -> Path {
        let hex = digest.to_hex();
        self.prefix.clone().join(&hex[..2]).join(&hex[2..])
    }

    fn range(&self, digest: &Digest, range: Range<u64>) -> Result<Vec<u8>> {
        let path = self.path(digest);
        let bytes = self.wait(self.remote.get_range(&path, range));
        Ok(bytes.map_err(|e| failed(&e, digest))?.to_vec())
    }
}

fn failed(error: &object_store::Error, digest: &Digest) -> Error {
    match error {
        object_store::Error::NotFound { .. } => {
            Error::new(ErrorKind::NotFound, format!("{digest} is not in the shared store"))
        }
        other => Error::new(ErrorKind::Io, format!("the shared store: {other}")).retryable(true),
    }
}

impl SharedObjects {
    /// Objects below `prefix` of a store.
    ///
    /// # Errors
    /// `invalid_input` for a prefix that is no path of the store; `io`.
    pub fn new(remote: Arc<dyn Remote>, prefix: &str) -> Result<Self> {
        let prefix = Path::parse(prefix).map_err(|e| Error::invalid(e.to_string()).with_path("prefix"))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Error::from_io(&e, "making a runtime"))?;
        Ok(Self(Arc::new(Shared {
            remote,
            prefix,
            runtime: Mutex::new(runtime),
        })))
    }
}

impl ObjectStore for SharedObjects {
    fn put(&self, bytes: &[u8]) -> Result<Digest> {
        let digest = Digest::of(bytes);
        if self.size(&digest)? != Some(bytes.len() as u64) {
            let path = self.0.path(&digest);
            let put = self.0.wait(self.0.remote.put(&path, bytes.to_vec().into()));
            put.map_err(|e| failed(&e, &digest))?;
        }
        Ok(digest)
    }

    fn writer(&self) -> Result<Box<dyn ObjectWriter>> {
        Ok(Box::new(Writer {
            shared: self.clone(),
            spool: tempfile::SpooledTempFile::new(PART),
            hasher: Hasher::new(),
            bytes: 0,
        }))
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>> {
        let path = self.0.path(digest);
        let bytes = self.0.wait(async { self.0.remote.get(&path).await?.bytes().await });
        let bytes = bytes.map_err(|e| failed(&e, digest))?.to_vec();
        if Digest::of(&bytes) == *digest {
            Ok(bytes)
        } else {
            Err(Error::new(
                ErrorKind::Corrupt,
                format!("{digest} of the shared store has other bytes"),
            ))
        }
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>> {
        let Some(bytes) = self.size(digest)? else {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("{digest} is not in the shared store"),
            ));
        };
        Ok(Box::new(Reader {
            shared: self.clone(),
            digest: *digest,
            hasher: Hasher::new(),
            bytes,
            next: 0,
            part: Vec::new(),
            at: 0,
        }))
    }

    fn get_range(&self, digest: &Digest, range: ByteRange) -> Result<Vec<u8>> {
        let Some(bytes) = self.size(digest)? else {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("{digest} is not in the shared store"),
            ));
        };
        if range.start() > bytes {
            return Err(Error::invalid(format!("the range starts past the object's {bytes} bytes")).with_path("bytes"));
        }
        let end = range.end().min(bytes);
        if range.start() == end {
            return Ok(Vec::new());
        }
        self.0.range(digest, range.start()..end)
    }

    fn size(&self, digest: &Digest) -> Result<Option<u64>> {
        let path = self.0.path(digest);
        match self.0.wait(self.0.remote.head(&path)) {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(failed(&e, digest)),
        }
    }
}

struct Writer {
    shared: SharedObjects,
    spool: tempfile::SpooledTempFile,
    hasher: Hasher,
    bytes: u64,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.spool.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.spool.flush()
    }
}

impl ObjectWriter for Writer {
    fn finish(mut self: Box<Self>) -> Result<(Digest, u64)> {
        let digest = self.hasher.finish();
        if self.shared.size(&digest)? == Some(self.bytes) {
            return Ok((digest, self.bytes));
        }
        let spool = |e: std::io::Error| Error::from_io(&e, "an object on its way to the shared store");
        self.spool.seek(SeekFrom::Start(0)).map_err(spool)?;
        let shared = &self.shared.0;
        let path = shared.path(&digest);
        let mut part = || -> Result<Vec<u8>> {
            let mut part = Vec::new();
            (&mut self.spool)
                .take(PART as u64)
                .read_to_end(&mut part)
                .map_err(spool)?;
            Ok(part)
        };
        let first = part()?;
        if self.bytes <= PART as u64 {
            let put = shared.wait(shared.remote.put(&path, first.into()));
            put.map_err(|e| failed(&e, &digest))?;
            return Ok((digest, self.bytes));
        }
        let mut upload = shared
            .wait(shared.remote.put_multipart(&path))
            .map_err(|e| failed(&e, &digest))?;
        let mut next = first;
        while !next.is_empty() {
            if let Err(e) = shared.wait(upload.put_part(next.into())) {
                // Half an upload is never an object; what cannot be aborted is the store's to expire.
                let _ = shared.wait(upload.abort());
                return Err(failed(&e, &digest));
            }
            next = part()?;
        }
        shared.wait(upload.complete()).map_err(|e| failed(&e, &digest))?;
        Ok((digest, self.bytes))
    }
}

struct Reader {
    shared: SharedObjects,
    digest: Digest,
    hasher: Hasher,
    bytes: u64,
    next: u64,
    part: Vec<u8>,
    at: usize,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.part.len() {
            if self.next == self.bytes {
                if self.hasher.finish() != self.digest {
                    let what = format!("{} of the shared store has other bytes", self.digest);
                    return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
                }
                return Ok(0);
            }
            let end = self.bytes.min(self.next + PART as u64);
            self.part = self
                .shared
                .0
                .range(&self.digest, self.next..end)
                .map_err(std::io::Error::other)?;
            if self.part.is_empty() {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            self.next += self.part.len() as u64;
            self.hasher.update(&self.part);
            self.at = 0;
        }
        let count = buffer.len().min(self.part.len() - self.at);
        buffer[..count].copy_from_slice(&self.part[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;
    use zero_contracts::CancelToken;

    #[test]
    fn objects_come_back_whole_in_parts_and_never_with_other_bytes() {
        let remote = Arc::new(InMemory::new());
        let shared = SharedObjects::new(remote.clone(), "fleet/objects").unwrap();
        let large: Vec<u8> = (0..PART * 2 + 17).map(|n| (n % 251) as u8).collect();
        for bytes in [&b""[..], b"x", &large] {
            let (digest, size) = shared.put_from(&mut &bytes[..], &CancelToken::new()).unwrap();
            assert_eq!((digest, size), (Digest::of(bytes), bytes.len() as u64));
            assert_eq!(shared.put(bytes).unwrap(), digest);
            assert_eq!(shared.size(&digest).unwrap(), Some(size));
            assert_eq!(shared.get(&digest).unwrap(), bytes);
            let mut read = Vec::new();
            shared.open(&digest).unwrap().read_to_end(&mut read).unwrap();
            assert_eq!(read, bytes);
        }
        let digest = Digest::of(&large);
        let part = shared.get_range(&digest, ByteRange::new(5, 9).unwrap()).unwrap();
        assert_eq!(part, &large[5..9]);
        let end = ByteRange::new(large.len() as u64, u64::MAX).unwrap();
        assert_eq!(shared.get_range(&digest, end).unwrap(), b"");
        assert_eq!(
            shared.get(&Digest::of(b"absent")).unwrap_err().kind,
            ErrorKind::NotFound
        );

        let path = shared.0.path(&digest);
        shared.0.wait(remote.put(&path, b"other".to_vec().into())).unwrap();
        assert_eq!(shared.get(&digest).unwrap_err().kind, ErrorKind::Corrupt);
        let mut read = Vec::new();
        let error = shared.open(&digest).unwrap().read_to_end(&mut read).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_caller_inside_a_runtime_may_wait() {
        let shared = SharedObjects::new(Arc::new(InMemory::new()), "").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let digest = runtime.block_on(async { shared.put(b"x") }).unwrap();
        assert_eq!(digest, Digest::of(b"x"));
    }
}
