//! The object store: immutable byte strings by their BLAKE3 digest, one file each under `objects/ab/cdef…`.
//!
//! An object is written to `tmp/` and renamed into place. It is not made durable then: a commit does that for all objects
//! stored before it ([`Store::take_pending`], [`Store::make_durable`]); small ones travel inside the journal instead, and
//! reading falls back on the journal for an object that is missing or damaged. There is no index to get out of step.
//! Nothing read is trusted: bytes that do not match their name are `corrupt`, and only that object is lost.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Cursor, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{Dir, Mode, OFlags, openat};
use rustix::io::Errno;
use zero_contracts::objects::ObjectWriter;
use zero_contracts::{ByteRange, CancelToken, Digest, Error, ErrorKind, Handle, Hasher, ObjectStore};

use crate::journal::Journal;
use crate::node::now;
use crate::round::Round;
use crate::seam::{Rename, Seam};
use crate::tree::stat_at;

/// Objects up to this size travel inside the journal to become durable.
pub(crate) const INLINE_BYTES: u64 = 16 * 1024;

/// An object up to this size is compared before it is stored again; a larger one after it was written to `tmp/`.
const COMPARE_BYTES: u64 = 1 << 20;

/// With more objects than this to make durable, the whole file system is flushed instead of each.
const SYNC_EACH: usize = 64;

/// The pending list is not kept longer than this: then the next commit flushes the whole file system.
const PENDING: usize = 20_000;

#[derive(Default)]
struct Pending {
    list: Vec<(Digest, u64)>,
    all: bool,
}

/// Objects that a commit has to make durable.
#[derive(Default)]
pub(crate) struct Unsynced {
    pub list: Vec<(Digest, u64)>,
    /// More than were counted.
    pub all: bool,
}

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

    /// Reads a small file of the store; none if it is not there.
    pub fn read_file(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        match openat(
            &self.dir,
            name,
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        ) {
            Ok(file) => {
                let mut bytes = Vec::new();
                File::from(file).read_to_end(&mut bytes).map_err(fail("reading"))?;
                Ok(Some(bytes))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(fail("reading")(e.into())),
        }
    }

    /// Tells whether a small file of the store is there.
    pub fn has_file(&self, name: &str) -> bool {
        matches!(stat_at(self.dir.as_fd(), name.as_bytes()), Ok(Some(_)))
    }

    /// Replaces a small file of the store.
    pub fn write_file(&self, name: &str, bytes: &[u8], sync: bool) -> Result<(), Error> {
        let fail = fail("writing to");
        let temporary = self.temporary();
        let file = self
            .seam
            .create(self.tmp.as_fd(), temporary.as_bytes(), 0o600)
            .map_err(&fail)?;
        let mut written = self.seam.write(file.as_fd(), bytes);
        if sync {
            written = written.and_then(|()| self.seam.sync(file.as_fd()));
        }
        let (tmp, dir) = (self.tmp.as_fd(), self.dir.as_fd());
        let placed = written.and_then(|()| {
            self.seam
                .rename(tmp, temporary.as_bytes(), dir, name.as_bytes(), Rename::Replace)
        });
        if placed.is_err() {
            let _ = self.seam.unlink(tmp, temporary.as_bytes());
        }
        placed.map_err(&fail)?;
        if sync {
            self.seam.sync_directory(dir).map_err(&fail)?;
        }
        Ok(())
    }

    /// Removes a small file of the store.
    pub fn remove_file(&self, name: &str) -> Result<(), Error> {
        match self.seam.unlink(self.dir.as_fd(), name.as_bytes()) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(fail("writing to")(e)),
            _ => Ok(()),
        }
    }

    fn remember(&self, digest: Digest, size: u64) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.list.len() < PENDING {
            pending.list.push((digest, size));
        } else {
            pending.all = true;
        }
    }

    /// Takes over the duty to make everything stored so far durable.
    pub fn take_pending(&self) -> Unsynced {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let Pending { mut list, all } = std::mem::take(&mut *pending);
        let mut seen = HashSet::new();
        list.retain(|(digest, _)| seen.insert(*digest));
        Unsynced { list, all }
    }

    /// Gives the duty back.
    pub fn put_back(&self, unsynced: Unsynced) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.all |= unsynced.all;
        pending.list.extend(unsynced.list);
    }

    /// Takes over the duty for what does not travel inside the journal.
    pub fn take_pending_large(&self) -> Unsynced {
        let all = self.take_pending();
        let (small, large) = all.list.into_iter().partition(|(_, size)| *size <= INLINE_BYTES);
        self.put_back(Unsynced {
            list: small,
            all: false,
        });
        Unsynced {
            list: large,
            all: all.all,
        }
    }

    /// Makes objects durable by themselves.
    pub fn make_durable(&self, unsynced: &Unsynced) -> Result<(), Error> {
        let mut round = Round::default();
        self.to_flush(unsynced, &mut round)?;
        round.flush(&self.seam).map_err(fail("flushing"))
    }

    /// Adds what makes objects durable to a round of flushes. The whole file system is flushed at once if there are many.
    pub fn to_flush(&self, unsynced: &Unsynced, round: &mut Round) -> Result<(), Error> {
        let fail = fail("flushing");
        if unsynced.all || unsynced.list.len() > SYNC_EACH {
            return self.seam.sync_all(self.objects.as_fd()).map_err(fail);
        }
        let mut directories = HashSet::new();
        for (digest, _) in &unsynced.list {
            let Some(file) = self.open_object(digest)? else {
                continue;
            };
            round.file(file.into());
            directories.insert(place(digest).0);
        }
        for name in &directories {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = openat(&self.objects, name.as_str(), flags, Mode::empty()).map_err(|e| fail(e.into()))?;
            round.directory(dir);
        }
        if !directories.is_empty() {
            round.directory(self.objects.try_clone().map_err(&fail)?);
        }
        Ok(())
    }

    /// Moves a complete file of `tmp/` to its place. A whole object that is there already stays: it may be durable, which
    /// the new one is not.
    fn settle(&self, temporary: &str, digest: &Digest) -> Result<(), Error> {
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
                return Ok(());
            }
            placed = rename(Rename::Replace);
        }
        if placed.is_err() {
            let _ = self.seam.unlink(tmp, temporary.as_bytes());
        }
        placed.map_err(fail("writing to"))
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

    /// Every object with its size and mtime.
    pub fn walk(&self) -> Result<Vec<(Digest, u64, i128)>, Error> {
        let fail = |e: Errno| fail("reading")(e.into());
        let mut found = Vec::new();
        for prefix in Dir::read_from(&self.objects).map_err(fail)? {
            let prefix = prefix.map_err(fail)?;
            let prefix = prefix.file_name().to_string_lossy().into_owned();
            if prefix.len() != 2 || prefix == ".." {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = openat(&self.objects, prefix.as_str(), flags, Mode::empty()).map_err(fail)?;
            for entry in Dir::read_from(&dir).map_err(fail)? {
                let entry = entry.map_err(fail)?;
                let name = entry.file_name().to_string_lossy();
                let Ok(digest) = format!("{prefix}{name}").parse() else {
                    continue;
                };
                if let Some(meta) = stat_at(dir.as_fd(), entry.file_name().to_bytes()).map_err(fail)? {
                    found.push((digest, meta.size, meta.mtime));
                }
            }
        }
        Ok(found)
    }

    /// Removes an object unless it was stored again meanwhile; tells whether it went.
    pub fn remove(&self, digest: &Digest, older_than: i128) -> Result<bool, Error> {
        let fail = fail("collecting in");
        let (dir, name) = place(digest);
        let target = format!("{dir}/{name}");
        let aside = self.temporary();
        let (objects, tmp) = (self.objects.as_fd(), self.tmp.as_fd());
        match self
            .seam
            .rename(objects, target.as_bytes(), tmp, aside.as_bytes(), Rename::NoReplace)
        {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            other => other.map_err(&fail)?,
        }
        let meta = stat_at(tmp, aside.as_bytes()).map_err(|e| fail(e.into()))?;
        if meta.is_some_and(|meta| meta.mtime > older_than) {
            self.seam
                .rename(tmp, aside.as_bytes(), objects, target.as_bytes(), Rename::Replace)
                .map_err(&fail)?;
            return Ok(false);
        }
        self.seam.unlink(tmp, aside.as_bytes()).map_err(&fail)?;
        Ok(true)
    }

    /// Removes files of `tmp/` that dead writers left.
    pub fn sweep_temporaries(&self, older_than: i128) -> Result<(), Error> {
        let fail = fail("collecting in");
        for entry in Dir::read_from(&self.tmp).map_err(|e| fail(e.into()))? {
            let entry = entry.map_err(|e| fail(e.into()))?;
            let name = entry.file_name().to_bytes();
            let meta = stat_at(self.tmp.as_fd(), name).map_err(|e| fail(e.into()))?;
            if meta.is_some_and(|m| m.kind == zero_contracts::read::EntryKind::File && m.mtime < older_than) {
                self.seam.unlink(self.tmp.as_fd(), name).map_err(&fail)?;
            }
        }
        Ok(())
    }

    /// Opens a writer; [`ObjectStore::writer`] for a store behind an `Arc`.
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
