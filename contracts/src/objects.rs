//! The border to content-addressed storage.

use std::io::{Read, Write};

use crate::{ByteRange, CancelToken, Digest, Error};

/// Immutable byte strings by their digest.
///
/// Objects are written once and verified on every complete read. All methods may be called from several threads.
pub trait ObjectStore: Send + Sync {
    /// Stores bytes; storing the same bytes again costs no space.
    ///
    /// # Errors
    /// `budget` when the store's quota is spent, `io` from the operating system.
    fn put(&self, bytes: &[u8]) -> Result<Digest, Error>;

    /// Opens a writer for bytes that arrive in pieces and need not fit in memory. Dropping it stores nothing.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    fn writer(&self) -> Result<Box<dyn ObjectWriter>, Error>;

    /// Returns an object's bytes, verified.
    ///
    /// # Errors
    /// `not_found` if there is none (collected, or never stored), `corrupt` if its bytes do not match.
    fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error>;

    /// Opens an object for reading from its start, without holding it in memory. The last read fails with an I/O error
    /// of kind `InvalidData` if the bytes do not match the digest.
    ///
    /// # Errors
    /// `not_found` if there is none; `corrupt` where damage is known before the first read.
    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, Error>;

    /// Returns a part of an object, cut at its end. The part is not verified against the digest.
    ///
    /// # Errors
    /// `not_found` if there is none, `invalid_input` if the range starts past the end.
    fn get_range(&self, digest: &Digest, range: ByteRange) -> Result<Vec<u8>, Error>;

    /// Returns an object's size in bytes; none if it is not there.
    ///
    /// # Errors
    /// `io` from the operating system.
    fn size(&self, digest: &Digest) -> Result<Option<u64>, Error>;

    /// Stores everything a reader gives; polls `token` between pieces.
    ///
    /// # Errors
    /// As for [`put`](Self::put); `io` from the reader; `cancelled` and `deadline` from the token.
    fn put_from(&self, reader: &mut dyn Read, token: &CancelToken) -> Result<(Digest, u64), Error> {
        let mut writer = self.writer()?;
        let mut buffer = vec![0; 128 * 1024];
        loop {
            token.check()?;
            match reader.read(&mut buffer) {
                Ok(0) => return writer.finish(),
                Ok(n) => writer
                    .write_all(&buffer[..n])
                    .map_err(|e| Error::from_io(&e, "writing an object"))?,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::from_io(&e, "reading what is to be stored")),
            }
        }
    }
}

/// Takes the bytes of one object.
pub trait ObjectWriter: Write + Send {
    /// Stores what was written; returns its digest and size in bytes.
    ///
    /// # Errors
    /// `budget` when the store's quota is spent, `io` from the operating system.
    fn finish(self: Box<Self>) -> Result<(Digest, u64), Error>;
}
