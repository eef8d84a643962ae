//! The object store: immutable byte strings by their BLAKE3 digest, one file each under `objects/ab/cdef…`.
//!
//! An object is written to `tmp/` and renamed into place. It is not made durable then: a commit does that for all objects
//! stored before it ([`Store::take_pending`], [`Store::make_durable`]); small ones travel inside the journal instead, and
//! reading falls back on the journal for an object that is missing or damaged. There is no index to get out of step.
//! Nothing read is trusted: bytes that do not match their name are `corrupt`, and only that object is lost.

mod durable;
mod files;
mod sweep;
mod writer;

use std::fs::File;
use std::io::{Cursor, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use zero_contracts::objects::ObjectWriter;
use zero_contracts::{ByteRange, CancelToken, Digest, Error, ErrorKind, Handle, Hasher, ObjectStore};

use crate::journal::Journal;
use crate::node::now;
use crate::seam::{Rename, Seam};
use crate::tree::stat_at;

/// Objects up to this size travel inside the journal to become durable.
pub(crate) const INLINE_BYTES: u64 = 16 * 1024;

/// An object up to this size is compared before it is stored again; a larger one after it was written to `tmp/`.
const COMPARE_BYTES: u64 = 1 << 20;

use durable::Pending;
pub(crate) use durable::Unsynced;
pub(crate) use writer::from_writer;

pub(crate) struct Store {
    objects: OwnedFd,
    tmp: OwnedFd,
    dir: OwnedFd,
    seam: Seam,
    journal: Arc<Journal>,
    quota: u64,
    young: Duration,
    used: Mutex<Option<u64>>,
    counter: AtomicU64,
    pending: Mutex<Pending>,
}

fn fail(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |e| {
        let mut error = Error::from_io(&e, format!("{what} the store"));
        if matches!(
            e.raw_os_error().map(Errno::from_raw_os_error),
            Some(Errno::NOSPC | Errno::DQUOT)
        ) {
            error.detail.push_str("; free some space, or collect garbage");
        }
        if error.kind == ErrorKind::NotFound {
            error.kind = ErrorKind::Io;
        }
        error
    }
}

fn place(digest: &Digest) -> (String, String) {
    let hex = digest.to_hex();
    (hex[..2].to_owned(), hex[2..].to_owned())
}

fn not_found(digest: &Digest) -> Error {
    let handle = Handle::blob(*digest);
    Error::new(
        ErrorKind::NotFound,
        format!("there is no {handle}: it was collected, or never stored"),
    )
    .with_path(handle)
}

fn corrupt(digest: &Digest) -> Error {
    let handle = Handle::blob(*digest);
    Error::new(
        ErrorKind::Corrupt,
        format!("the bytes of {handle} are damaged; nothing else is affected"),
    )
    .with_path(handle)
}

impl Store {
    pub fn new(
        dir: OwnedFd,
        objects: OwnedFd,
        tmp: OwnedFd,
        seam: Seam,
        journal: Arc<Journal>,
        quota: u64,
        young: Duration,
    ) -> Self {
        Self {
            objects,
            tmp,
            dir,
            seam,
            journal,
            quota,
            young,
            used: Mutex::default(),
            counter: AtomicU64::default(),
            pending: Mutex::default(),
        }
    }

    pub fn directory(&self) -> &OwnedFd {
        &self.dir
    }

    fn open_object(&self, digest: &Digest) -> Result<Option<File>, Error> {
        let (dir, name) = place(digest);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.objects, format!("{dir}/{name}"), flags, Mode::empty()) {
            Ok(file) => Ok(Some(File::from(file))),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(fail("reading")(e.into())),
        }
    }

    fn read_object(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        let Some(mut file) = self.open_object(digest)? else {
            return Ok(None);
        };
        let size = file.metadata().map_err(fail("reading"))?.len();
        let mut bytes = Vec::with_capacity(size as usize);
        file.read_to_end(&mut bytes).map_err(fail("reading"))?;
        Ok(Some(bytes))
    }

    /// A name in `tmp/` that no other writer uses.
    pub fn temporary(&self) -> String {
        let n = self.counter.fetch_add(1, Ordering::Relaxed);
        format!("{:x}-{:x}-{n:x}", std::process::id(), now() as u64)
    }

    /// Bytes that all objects take, about.
    fn charge(&self, bytes: u64) -> Result<(), Error> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match *used {
            Some(n) => n,
            None => match self
                .read_file("usage")?
                .and_then(|b| String::from_utf8(b).ok()?.trim().parse().ok())
            {
                Some(n) => n,
                None => self.walk()?.iter().map(|object| object.1).sum(),
            },
        };
        *used = Some(before);
        if before.saturating_add(bytes) > self.quota {
            return Err(Error::new(
                ErrorKind::Budget,
                format!(
                    "the store's quota of {} bytes is spent; collect garbage (gc)",
                    self.quota
                ),
            ));
        }
        *used = Some(before + bytes);
        Ok(())
    }

    /// Remembers how much objects take.
    pub fn save_usage(&self, exact: Option<u64>) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if exact.is_some() {
            *used = exact;
        }
        if let Some(n) = *used {
            // It is a hint: losing it costs a count.
            let _ = self.write_file("usage", n.to_string().as_bytes(), false);
        }
    }

    /// Moves a complete file of `tmp/` to its place. A whole object that is there already stays: it may be durable, which
    /// the new one is not. Tells whether the file was moved.
    fn settle(&self, temporary: &str, digest: &Digest) -> Result<bool, Error> {
        let (dir, name) = place(digest);
        let target = format!("{dir}/{name}");
        let (tmp, objects) = (self.tmp.as_fd(), self.objects.as_fd());
        let rename = |how| {
            self.seam
                .rename(tmp, temporary.as_bytes(), objects, target.as_bytes(), how)
        };
        let mut placed = rename(Rename::NoReplace);
        if matches!(&placed, Err(e) if e.kind() == std::io::ErrorKind::NotFound) {
            placed = match self.seam.make_directory(objects, dir.as_bytes(), 0o700) {
                Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => Err(e),
                _ => rename(Rename::NoReplace),
            };
        }
        if matches!(&placed, Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists) {
            if self.is_whole(digest)? && self.rejuvenate(&target)? {
                let _ = self.seam.unlink(tmp, temporary.as_bytes());
                return Ok(false);
            }
            placed = rename(Rename::Replace);
        }
        if placed.is_err() {
            let _ = self.seam.unlink(tmp, temporary.as_bytes());
        }
        placed.map_err(fail("writing to"))?;
        Ok(true)
    }

    /// Reads an object of any size and compares it with its name.
    fn is_whole(&self, digest: &Digest) -> Result<bool, Error> {
        let Some(mut file) = self.open_object(digest)? else {
            return Ok(false);
        };
        let mut hasher = Hasher::new();
        let mut buffer = vec![0; 256 * 1024];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(hasher.finish() == *digest),
                Ok(n) => drop(hasher.update(&buffer[..n])),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(fail("reading")(e)),
            }
        }
    }

    /// Tells whether an object is there already, whole; makes it young.
    fn refresh(&self, digest: &Digest, bytes: &[u8]) -> Result<bool, Error> {
        let (dir, name) = place(digest);
        let target = format!("{dir}/{name}");
        let stat = |path: &str| stat_at(self.objects.as_fd(), path.as_bytes());
        let Some(meta) = stat(&target).map_err(|e| fail("reading")(e.into()))? else {
            return Ok(false);
        };
        if meta.size != bytes.len() as u64 || meta.size > COMPARE_BYTES {
            return Ok(false);
        }
        if self.read_object(digest)?.as_deref() != Some(bytes) {
            return Ok(false);
        }
        self.rejuvenate(&target)
    }

    /// Makes an object young, so that no collection takes it; false if it is gone.
    fn rejuvenate(&self, target: &str) -> Result<bool, Error> {
        let stat = || stat_at(self.objects.as_fd(), target.as_bytes()).map_err(|e| fail("reading")(e.into()));
        let Some(meta) = stat()? else {
            return Ok(false);
        };
        if now() - meta.mtime > self.young.as_nanos() as i128 / 2 {
            // A collector may be about to remove it: it looks at the time again after it has moved the object aside,
            // and we look whether it is still there after we have set the time.
            if self.seam.touch(self.objects.as_fd(), target.as_bytes()).is_err() {
                return Ok(false);
            }
            return Ok(stat()?.is_some());
        }
        Ok(true)
    }

    /// Tells whether an object is there, without a look at its bytes.
    pub fn has(&self, digest: &Digest) -> Result<bool, Error> {
        Ok(self.size(digest)?.is_some())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.save_usage(None);
    }
}

/// The store as the contracts see it.
pub(crate) struct Objects(pub Arc<Store>);

impl std::ops::Deref for Objects {
    type Target = Store;
    fn deref(&self) -> &Store {
        &self.0
    }
}

impl Store {
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        let digest = Digest::of(bytes);
        if !self.refresh(&digest, bytes)? {
            let fail = fail("writing to");
            self.charge(bytes.len() as u64)?;
            let temporary = self.temporary();
            let file = self
                .seam
                .create(self.tmp.as_fd(), temporary.as_bytes(), 0o600)
                .map_err(&fail)?;
            if let Err(e) = self.seam.write(file.as_fd(), bytes) {
                let _ = self.seam.unlink(self.tmp.as_fd(), temporary.as_bytes());
                return Err(fail(e));
            }
            self.settle(&temporary, &digest)?;
        }
        self.remember(digest, bytes.len() as u64);
        Ok(digest)
    }

    pub fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let found = self.read_object(digest)?;
        let damaged = match found {
            Some(bytes) if Digest::of(&bytes) == *digest => return Ok(bytes),
            Some(_) => true,
            None => false,
        };
        match self.journal.inline(digest)? {
            Some(bytes) => Ok(bytes),
            None if damaged => Err(corrupt(digest)),
            None => Err(not_found(digest)),
        }
    }

    pub fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, Error> {
        match self.open_object(digest)? {
            Some(file) => {
                let size = file.metadata().map_err(fail("reading"))?.len();
                if size <= INLINE_BYTES {
                    return Ok(Box::new(Cursor::new(self.get(digest)?)));
                }
                Ok(Box::new(Verified {
                    file,
                    hasher: Hasher::new(),
                    digest: *digest,
                    done: false,
                }))
            }
            None => match self.journal.inline(digest)? {
                Some(bytes) => Ok(Box::new(Cursor::new(bytes))),
                None => Err(not_found(digest)),
            },
        }
    }

    pub fn size(&self, digest: &Digest) -> Result<Option<u64>, Error> {
        let (dir, name) = place(digest);
        let found = stat_at(self.objects.as_fd(), format!("{dir}/{name}").as_bytes());
        match found.map_err(|e| fail("reading")(e.into()))? {
            Some(meta) => Ok(Some(meta.size)),
            None => Ok(self.journal.inline(digest)?.map(|bytes| bytes.len() as u64)),
        }
    }
}

impl ObjectStore for Objects {
    fn put(&self, bytes: &[u8]) -> Result<Digest, Error> {
        self.0.put(bytes)
    }

    fn writer(&self) -> Result<Box<dyn ObjectWriter>, Error> {
        Ok(Box::new(self.0.writer_of()?))
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        self.0.get(digest)
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, Error> {
        self.0.open(digest)
    }

    fn get_range(&self, digest: &Digest, range: ByteRange) -> Result<Vec<u8>, Error> {
        match self.0.open_object(digest)? {
            Some(file) => {
                let length = file.metadata().map_err(fail("reading"))?.len();
                let range = range.within(length)?;
                let mut bytes = vec![0; range.len() as usize];
                file.read_exact_at(&mut bytes, range.start()).map_err(fail("reading"))?;
                Ok(bytes)
            }
            None => {
                let bytes = self.0.get(digest)?;
                let range = range.within(bytes.len() as u64)?;
                Ok(bytes[range.start() as usize..range.end() as usize].to_vec())
            }
        }
    }

    fn size(&self, digest: &Digest) -> Result<Option<u64>, Error> {
        self.0.size(digest)
    }

    fn put_from(&self, reader: &mut dyn Read, token: &CancelToken) -> Result<(Digest, u64), Error> {
        let mut writer = self.0.writer_of()?;
        crate::text::splice(&[], reader, &mut writer, token)?;
        Box::new(writer).finish()
    }
}

/// Reads an object and compares its digest at the end.
struct Verified {
    file: File,
    hasher: Hasher,
    digest: Digest,
    done: bool,
}

impl Read for Verified {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read(buffer)?;
        if n > 0 {
            self.hasher.update(&buffer[..n]);
        } else if !buffer.is_empty() && !self.done {
            if self.hasher.finish() != self.digest {
                return Err(std::io::Error::new(
                    std::io::ErrorKind::InvalidData,
                    corrupt(&self.digest),
                ));
            }
            self.done = true;
        }
        Ok(n)
    }
}
