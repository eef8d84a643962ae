//! Defects of an object store.

use std::io::{self, Read, Write};
use std::sync::Arc;

use zero_contracts::objects::ObjectWriter;
use zero_contracts::{ByteRange, CancelToken, Digest, Error, ErrorKind, ObjectStore};

use crate::models::objects::MemoryObjects;
use crate::suites::objects::Objects;

super::faults! {
    /// One defect of an object store.
    pub enum ObjectFault {
        DigestOfOtherBytes, NothingIsStored, StoredShort, SecondPutFails, EmptyIsRefused, GetUnverified,
        GetOfNothingIsEmpty, GetOfNothingIsIo, OpenOfNothingIsIo, OpenShort, OpenUnverified, RangeInclusive,
        RangeNotCut, RangePastTheEndIsEmpty, RangeOfNothingIsEmpty, SizeOfNothingIsZero, SizeOffByOne,
        WriterLosesItsFirstPiece, WriterSizeIsOfTheLastPiece, DroppedWriterStores, ReaderIgnoresCancellation,
        ReaderErrorEndsTheObject, ReaderErrorIsInternal, OnePieceOfTheReader,
    }
}

/// A store with one defect.
#[derive(Clone)]
pub struct FaultyObjects {
    inner: MemoryObjects,
    fault: ObjectFault,
}

impl FaultyObjects {
    /// Makes an empty one.
    pub fn new(fault: ObjectFault) -> Self {
        let inner = MemoryObjects::default();
        Self { inner, fault }
    }
}

impl Objects for FaultyObjects {
    fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::new(self.clone())
    }

    fn damage(&self, digest: &Digest) {
        self.inner.damage(digest);
    }
}

fn io_error() -> Error {
    Error::new(ErrorKind::Io, "something failed")
}

impl ObjectStore for FaultyObjects {
    fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        match self.fault {
            ObjectFault::DigestOfOtherBytes => self.inner.put(&[bytes, b"!"].concat()),
            ObjectFault::NothingIsStored => Ok(Digest::of(bytes)),
            ObjectFault::StoredShort if bytes.len() > 1 => {
                self.inner.put(&bytes[..bytes.len() - 1])?;
                Ok(Digest::of(bytes))
            }
            ObjectFault::SecondPutFails if self.inner.raw(&Digest::of(bytes)).is_some() => {
                Err(Error::new(ErrorKind::Conflict, "it is there already"))
            }
            ObjectFault::EmptyIsRefused if bytes.is_empty() => Err(Error::invalid("there are no bytes")),
            _ => self.inner.put(bytes),
        }
    }

    fn writer(&self) -> Result<Box<dyn ObjectWriter>, Error> {
        let store = self.clone();
        Ok(Box::new(FaultyWriter {
            store,
            pieces: Vec::new(),
            finished: false,
        }))
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        match (self.fault, self.inner.raw(digest)) {
            (ObjectFault::GetUnverified, Some(bytes)) => Ok(bytes),
            (ObjectFault::GetOfNothingIsEmpty, None) => Ok(Vec::new()),
            (ObjectFault::GetOfNothingIsIo, None) => Err(io_error()),
            _ => self.inner.get(digest),
        }
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, Error> {
        match (self.fault, self.inner.raw(digest)) {
            (ObjectFault::OpenOfNothingIsIo, None) => Err(io_error()),
            (ObjectFault::OpenUnverified, Some(bytes)) => Ok(Box::new(io::Cursor::new(bytes))),
            (ObjectFault::OpenShort, _) => Ok(Box::new(self.inner.open(digest)?.take(100_000))),
            _ => self.inner.open(digest),
        }
    }

    fn get_range(&self, digest: &Digest, range: ByteRange) -> Result<Vec<u8>, Error> {
        let size = self.inner.size(digest)?;
        match (self.fault, size) {
            (ObjectFault::RangeInclusive, Some(_)) => self
                .inner
                .get_range(digest, ByteRange::new(range.start(), range.end() + 1)?),
            (ObjectFault::RangeNotCut, Some(size)) if range.end() > size => {
                Err(Error::invalid("the range ends past the end"))
            }
            (ObjectFault::RangePastTheEndIsEmpty, Some(size)) if range.start() > size => Ok(Vec::new()),
            (ObjectFault::RangeOfNothingIsEmpty, None) => Ok(Vec::new()),
            _ => self.inner.get_range(digest, range),
        }
    }

    fn size(&self, digest: &Digest) -> Result<Option<u64>, Error> {
        let size = self.inner.size(digest)?;
        Ok(match self.fault {
            ObjectFault::SizeOfNothingIsZero => Some(size.unwrap_or_default()),
            ObjectFault::SizeOffByOne => size.map(|size| size + 1),
            _ => size,
        })
    }

    fn put_from(&self, reader: &mut dyn Read, token: &CancelToken) -> Result<(Digest, u64), Error> {
        let mut bytes = Vec::new();
        let read = match self.fault {
            ObjectFault::ReaderIgnoresCancellation => reader.read_to_end(&mut bytes),
            ObjectFault::ReaderErrorEndsTheObject => reader.read_to_end(&mut bytes).or(Ok(0)),
            ObjectFault::ReaderErrorIsInternal => {
                token.check()?;
                let read = reader.read_to_end(&mut bytes);
                read.map_err(|e| Error::new(ErrorKind::Internal, e.to_string()))?;
                Ok(0)
            }
            ObjectFault::OnePieceOfTheReader => {
                token.check()?;
                bytes = vec![0; 4_096];
                let read = reader.read(&mut bytes);
                bytes.truncate(*read.as_ref().unwrap_or(&0));
                read
            }
            _ => return self.inner.put_from(reader, token),
        };
        read.map_err(|e| Error::from_io(&e, "reading"))?;
        Ok((self.put(&bytes)?, bytes.len() as u64))
    }
}

struct FaultyWriter {
    store: FaultyObjects,
    pieces: Vec<Vec<u8>>,
    finished: bool,
}

impl Write for FaultyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pieces.push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ObjectWriter for FaultyWriter {
    fn finish(mut self: Box<Self>) -> Result<(Digest, u64), Error> {
        self.finished = true;
        let lost = usize::from(self.store.fault == ObjectFault::WriterLosesItsFirstPiece);
        let bytes = self.pieces[lost.min(self.pieces.len())..].concat();
        let size = match (self.store.fault, self.pieces.last()) {
            (ObjectFault::WriterSizeIsOfTheLastPiece, Some(last)) => last.len(),
            _ => bytes.len(),
        };
        Ok((self.store.put(&bytes)?, size as u64))
    }
}

impl Drop for FaultyWriter {
    fn drop(&mut self) {
        if self.store.fault == ObjectFault::DroppedWriterStores && !self.finished {
            // What is stored in spite of the drop is the defect; there is nobody to tell if even that fails.
            let _ = self.store.inner.put(&self.pieces.concat());
        }
    }
}
