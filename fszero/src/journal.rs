//! The journal: append-only segments of checksummed frames in the store's `journal/`.
//!
//! Segments are named by the number of their first frame. A transaction never spans two, so the last one alone tells
//! the epoch, the open transactions and the next number; opening costs one segment, whatever the history. Other
//! processes may append too, one at a time under the workspace lease: every call first reads what is new.
//! This module knows frames and records, and nothing of the tree.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, OFlags, openat};
use zero_contracts::files::CommitRecord;
use zero_contracts::wire;
use zero_contracts::{CellId, Digest, Epoch, Error, ErrorKind, SessionName};

use crate::frame;
use crate::record::{Batch, JOURNAL_VERSION, Record};
use crate::round::Round;
use crate::seam::Seam;

/// A segment this long gets a successor before the next transaction.
const SEGMENT_BYTES: u64 = 8 << 20;

/// A transaction that is neither settled nor restored.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub cell: CellId,
    pub session: SessionName,
    pub batches: Vec<Batch>,
    /// A baseline that no end of capture followed.
    pub baseline: Option<Digest>,
    pub commit: Option<CommitRecord>,
}

#[derive(Default)]
struct Tail {
    /// First number of every segment; the last is the current one.
    segments: BTreeSet<u64>,
    /// How far the current segment was read.
    offset: u64,
    /// Number of the next frame.
    next: u64,
    epoch: Epoch,
    open: Vec<Open>,
    /// Commits of the current segment.
    commits: Vec<CommitRecord>,
    /// Bytes after `offset` are a torn tail.
    torn: bool,
    /// Numbers were left out: the next record begins a segment.
    gap: bool,
    loaded: bool,
}

/// Records that were appended.
pub(crate) struct Written {
    file: OwnedFd,
    /// Whether their segment is new.
    made: bool,
    segment: u64,
    start: u64,
    end: u64,
    /// Number of the last.
    last: u64,
}

/// Where a small object lies: segment, offset of its frame.
#[derive(Default)]
struct Index {
    places: HashMap<Digest, (u64, u64)>,
    upto: HashMap<u64, u64>,
}

pub(crate) struct Journal {
    dir: OwnedFd,
    seam: Seam,
    /// Whether it is flushed at all.
    lasting: bool,
    /// Somebody saw a commit of this number, whether it is still here or not.
    seen: AtomicU64,
    tail: Mutex<Tail>,
    index: Mutex<Index>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while the lock was held left at worst stale numbers, which the next refresh reads again.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(what: &str) -> impl Fn(std::io::Error) -> Error + '_ {
    move |e| {
        let mut error = Error::from_io(&e, format!("{what} the journal"));
        if error.kind == ErrorKind::NotFound {
            error.kind = ErrorKind::Io;
        }
        error
    }
}

fn name(segment: u64) -> String {
    format!("{segment:016x}.seg")
}

/// What a segment holds from an offset on.
pub(crate) struct Scan {
    /// Offset, number and record of every whole frame.
    pub records: Vec<(u64, u64, Record)>,
    /// Offsets of damage, with what is wrong.
    pub damage: Vec<(u64, String)>,
    /// End of the last whole frame.
    pub end: u64,
    /// Whether bytes follow that are no frame.
    pub torn: bool,
}

fn scan(bytes: &[u8], base: u64) -> Scan {
    let mut found = Scan {
        records: Vec::new(),
        damage: Vec::new(),
        end: base,
        torn: false,
    };
    let mut at = 0;
    while at < bytes.len() {
        if let Some(frame) = frame::read(bytes, at) {
            match wire::decode(frame.payload) {
                Ok(record) => found.records.push((base + at as u64, frame.sequence, record)),
                Err(e) => found.damage.push((
                    base + at as u64,
                    format!("frame {} does not decode: {e}", frame.sequence),
                )),
            }
            at = frame.end;
            found.end = base + at as u64;
        } else if let Some(next) = frame::resync(bytes, at) {
            found
                .damage
                .push((base + at as u64, format!("{} bytes are no frame", next - at)));
            at = next;
        } else {
            found.torn = true;
            break;
        }
    }
    found
}

impl Journal {
    /// Opens the journal in a directory; reads nothing yet. One that does not last is never flushed.
    pub fn new(dir: OwnedFd, seam: Seam, lasting: bool) -> Self {
        Self {
            dir,
            seam,
            lasting,
            seen: AtomicU64::new(0),
            tail: Mutex::default(),
            index: Mutex::default(),
        }
    }

    /// Whether the store is one that lasts: the others are never flushed.
    pub fn is_lasting(&self) -> bool {
        self.lasting
    }

    fn read_from(&self, segment: u64, offset: u64) -> std::io::Result<Option<Vec<u8>>> {
        let file = match openat(
            &self.dir,
            name(segment),
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        ) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        let length = file.metadata()?.len();
        let mut bytes = vec![0; length.saturating_sub(offset) as usize];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(Some(bytes))
    }

    fn size(&self, segment: u64) -> std::io::Result<Option<u64>> {
        Ok(crate::tree::stat_at(self.dir.as_fd(), name(segment).as_bytes())?.map(|meta| meta.size))
    }

    fn list(&self) -> std::io::Result<BTreeSet<u64>> {
        let mut segments = BTreeSet::new();
        for entry in rustix::fs::Dir::read_from(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name().to_str().unwrap_or_default();
            if let Some(first) = name
                .strip_suffix(".seg")
                .and_then(|hex| u64::from_str_radix(hex, 16).ok())
            {
                segments.insert(first);
            }
        }
        Ok(segments)
    }

    /// Reads what is new; returns the guard over the present state.
    fn refresh(&self) -> Result<MutexGuard<'_, Tail>, Error> {
        let mut tail = lock(&self.tail);
        self.read_new(&mut tail)?;
        let seen = self.seen.load(Ordering::Relaxed);
        if tail.next <= seen {
            tail.next = seen + 1;
            tail.gap = true;
        }
        Ok(tail)
    }

    fn read_new(&self, tail: &mut Tail) -> Result<(), Error> {
        let fail = failed("reading");
        if tail.loaded {
            let current = tail.segments.last().copied();
            let size = current
                .map(|segment| self.size(segment))
                .transpose()
                .map_err(&fail)?
                .flatten();
            match (current, size) {
                (Some(_), Some(size)) if size == tail.offset && size < SEGMENT_BYTES => return Ok(()),
                // Another process may have begun a segment, named by the next number.
                (Some(_), Some(size)) if size == tail.offset && self.size(tail.next).map_err(&fail)?.is_none() => {
                    return Ok(());
                }
                (Some(segment), Some(size)) if size > tail.offset => {
                    if let Some(bytes) = self.read_from(segment, tail.offset).map_err(&fail)? {
                        self.absorb(tail, &bytes)?;
                    }
                    if self.size(tail.next).map_err(&fail)?.is_none() {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        let segments = self.list().map_err(&fail)?;
        *tail = Tail {
            segments,
            loaded: true,
            next: 1,
            ..Tail::default()
        };
        // A last segment may hold no whole frame, after a crash at its birth: then the one before tells the state.
        let recent: Vec<u64> = tail.segments.iter().rev().take(2).rev().copied().collect();
        for segment in recent {
            let bytes = self.read_from(segment, 0).map_err(&fail)?.unwrap_or_default();
            tail.offset = 0;
            tail.commits.clear();
            tail.next = tail.next.max(segment);
            self.absorb(tail, &bytes)?;
        }
        Ok(())
    }

    fn absorb(&self, tail: &mut Tail, bytes: &[u8]) -> Result<(), Error> {
        let scan = scan(bytes, tail.offset);
        for (_, sequence, record) in scan.records {
            note(tail, sequence, record)?;
        }
        tail.offset = scan.end;
        tail.torn = scan.torn;
        Ok(())
    }

    /// Appends records as one write; with `sync` they are durable afterwards. Returns the number of the last.
    pub fn append(&self, records: Vec<Record>, sync: bool) -> Result<u64, Error> {
        self.append_with(records, sync.then(Round::default))
    }

    /// Appends records as one write; with a round they are durable afterwards, together with what it holds. Returns the
    /// number of the last.
    pub fn append_with(&self, records: Vec<Record>, with: Option<Round>) -> Result<u64, Error> {
        // Nobody of this process sees them before they are durable.
        let mut tail = self.refresh()?;
        let written = self.write_at(&mut tail, |_| records)?;
        if let Some(mut round) = with {
            let flushed = self.to_flush(&written, &mut round);
            if let Err(e) = flushed.and_then(|()| round.flush(&self.seam)) {
                self.cut(&mut tail, &written);
                return Err(failed("writing")(e));
            }
        }
        Ok(written.last)
    }

    /// Appends records as one write, durable only once what [`Self::to_flush`] adds is flushed. They are made when the
    /// number that the first of them gets is known.
    pub fn write(&self, make: impl FnOnce(u64) -> Vec<Record>) -> Result<Written, Error> {
        let mut tail = self.refresh()?;
        self.write_at(&mut tail, make)
    }

    fn write_at(&self, tail: &mut Tail, make: impl FnOnce(u64) -> Vec<Record>) -> Result<Written, Error> {
        let fail = failed("writing");
        let roll = match tail.segments.last() {
            None => true,
            Some(_) => tail.gap || tail.offset >= SEGMENT_BYTES && tail.open.is_empty(),
        };
        let segment = match tail.segments.last() {
            Some(&segment) if !roll => segment,
            _ => tail.next,
        };
        let mut bytes = Vec::new();
        let mut numbered = Vec::new();
        if roll {
            tail.offset = 0;
            tail.torn = false;
        }
        let header = (tail.offset == 0).then_some(Record::Header {
            version: JOURNAL_VERSION,
            epoch: tail.epoch,
        });
        let mut next = tail.next;
        let first = next + u64::from(header.is_some());
        for record in header.into_iter().chain(make(first)) {
            let payload = wire::encode(&record)?;
            frame::write(&mut bytes, next, &payload);
            numbered.push((next, record));
            next += 1;
        }
        let made = roll && !tail.segments.contains(&segment);
        let file = if made {
            self.seam
                .create(self.dir.as_fd(), name(segment).as_bytes(), 0o600)
                .map_err(&fail)?
        } else {
            self.open_end(segment).map_err(&fail)?
        };
        if made {
            tail.segments.insert(segment);
            tail.commits.clear();
            tail.gap = false;
        }
        let mut file = File::from(file);
        let result = (|| {
            if tail.torn {
                self.seam.truncate(file.as_fd(), tail.offset)?;
                tail.torn = false;
            }
            std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(tail.offset))?;
            self.seam.write(file.as_fd(), &bytes)
        })();
        let written = Written {
            file: file.into(),
            made,
            segment,
            start: tail.offset,
            end: tail.offset + bytes.len() as u64,
            last: next - 1,
        };
        if let Err(e) = result {
            self.cut(tail, &written);
            return Err(fail(e));
        }
        tail.offset = written.end;
        for (sequence, record) in numbered {
            note(tail, sequence, record)?;
        }
        Ok(written)
    }

    /// Adds what makes records durable to a round of flushes.
    pub fn to_flush(&self, written: &Written, round: &mut Round) -> std::io::Result<()> {
        if !self.lasting {
            return Ok(());
        }
        round.file(written.file.try_clone()?);
        if written.made {
            round.directory(self.dir.try_clone()?);
        }
        Ok(())
    }

    /// Cuts off records that could not be made durable: their caller acts as if they had never been.
    pub fn retract(&self, written: &Written) {
        let mut tail = lock(&self.tail);
        if tail.segments.last() == Some(&written.segment) && tail.offset == written.end {
            self.cut(&mut tail, written);
        }
    }

    /// What reached the disk is unknown: it is cut off, and read again before anything else is decided.
    fn cut(&self, tail: &mut Tail, written: &Written) {
        let _ = self.seam.truncate(written.file.as_fd(), written.start);
        tail.loaded = false;
    }

    /// Opens a segment for writing; nothing is made or cut, so this is no step of the seam.
    fn open_end(&self, segment: u64) -> std::io::Result<OwnedFd> {
        self.seam.open_existing(self.dir.as_fd(), name(segment).as_bytes())
    }

    /// Greatest epoch seen.
    pub fn epoch(&self) -> Result<Epoch, Error> {
        Ok(self.refresh()?.epoch)
    }

    /// Transactions that are neither settled nor restored.
    pub fn open(&self) -> Result<Vec<Open>, Error> {
        Ok(self.refresh()?.open.clone())
    }

    /// Tells whether a transaction is neither committed nor restored.
    pub fn has_open(&self) -> Result<bool, Error> {
        Ok(self.refresh()?.open.iter().any(|open| open.commit.is_none()))
    }

    /// Tells whether a transaction is open, or committed with temporaries that nobody removed yet.
    pub fn has_unsettled(&self) -> Result<bool, Error> {
        Ok(!self.refresh()?.open.is_empty())
    }

    /// Tells whether a batch of this tag belongs to a transaction that is not over.
    pub fn knows(&self, tag: u64) -> Result<bool, Error> {
        let tail = self.refresh()?;
        Ok(tail
            .open
            .iter()
            .any(|open| open.batches.iter().any(|batch| batch.tag == tag)))
    }

    /// Commits after a number, oldest first; later ones will have greater numbers, too.
    pub fn commits_after(&self, sequence: u64) -> Result<Vec<CommitRecord>, Error> {
        self.seen.fetch_max(sequence, Ordering::Relaxed);
        let (segments, current) = {
            let tail = self.refresh()?;
            (tail.segments.clone(), tail.commits.clone())
        };
        let first = segments
            .range(..=sequence.saturating_add(1))
            .next_back()
            .copied()
            .unwrap_or(0);
        let mut commits = Vec::new();
        for &segment in segments.range(first..) {
            if Some(&segment) == segments.last() {
                break;
            }
            for (_, sequence, record) in self.scan_segment(segment)?.records {
                commits.extend(commit(sequence, record));
            }
        }
        commits.extend(current);
        commits.retain(|commit| commit.sequence > sequence);
        Ok(commits)
    }

    /// Every segment, oldest first.
    pub fn segments(&self) -> Result<Vec<u64>, Error> {
        Ok(self.refresh()?.segments.iter().copied().collect())
    }

    /// Reads a whole segment.
    pub fn scan_segment(&self, segment: u64) -> Result<Scan, Error> {
        let bytes = self
            .read_from(segment, 0)
            .map_err(failed("reading"))?
            .unwrap_or_default();
        Ok(scan(&bytes, 0))
    }

    /// Removes a segment that is not the current one.
    pub fn remove_segment(&self, segment: u64, sync: bool) -> Result<(), Error> {
        let fail = failed("pruning");
        let mut tail = self.refresh()?;
        if tail.segments.last() == Some(&segment) || !tail.segments.contains(&segment) {
            return Ok(());
        }
        self.seam
            .unlink(self.dir.as_fd(), name(segment).as_bytes())
            .map_err(&fail)?;
        if sync && self.lasting {
            self.seam.sync_directory(self.dir.as_fd()).map_err(&fail)?;
        }
        tail.segments.remove(&segment);
        let mut index = lock(&self.index);
        index.upto.remove(&segment);
        index.places.retain(|_, place| place.0 != segment);
        Ok(())
    }

    /// Greatest number of a commit that somebody saw.
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// Number of the next frame.
    pub fn next(&self) -> Result<u64, Error> {
        Ok(self.refresh()?.next)
    }

    /// Finds the batches of a committed transaction, newest segment first.
    pub fn find_commit(&self, cell: &CellId) -> Result<Option<Vec<Batch>>, Error> {
        for segment in self.segments()?.into_iter().rev() {
            let mut batches = Vec::new();
            let mut committed = false;
            for (_, _, record) in self.scan_segment(segment)?.records {
                match record {
                    Record::Intents { cell: of, batch, .. } | Record::CaptureEnded { cell: of, batch }
                        if of == *cell =>
                    {
                        batches.push(batch);
                    }
                    Record::Withdrawn { cell: of, tag } if of == *cell => {
                        batches.retain(|batch: &Batch| batch.tag != tag)
                    }
                    Record::Commit { cell: of, .. } if of == *cell => committed = true,
                    Record::Restored { cell: of } if of == *cell => batches.clear(),
                    _ => {}
                }
            }
            if committed {
                return Ok(Some(batches));
            }
        }
        Ok(None)
    }

    /// Returns a small object that some record carries.
    pub fn inline(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        let fail = failed("reading");
        let segments = self.segments()?;
        let mut index = lock(&self.index);
        if !index.places.contains_key(digest) {
            for segment in segments {
                let from = index.upto.get(&segment).copied().unwrap_or(0);
                if self.size(segment).map_err(&fail)?.unwrap_or(0) <= from {
                    continue;
                }
                let bytes = self.read_from(segment, from).map_err(&fail)?.unwrap_or_default();
                let scan = scan(&bytes, from);
                for (at, _, record) in &scan.records {
                    for object in record.objects() {
                        index.places.insert(object.digest, (segment, *at));
                    }
                }
                index.upto.insert(segment, scan.end);
            }
        }
        let Some(&(segment, at)) = index.places.get(digest) else {
            return Ok(None);
        };
        let bytes = self.read_from(segment, at).map_err(&fail)?.unwrap_or_default();
        let record = frame::read(&bytes, 0).and_then(|frame| wire::decode::<Record>(frame.payload).ok());
        let object = record.and_then(|r| r.objects().iter().find(|o| o.digest == *digest).cloned());
        Ok(object.map(|o| o.bytes).filter(|bytes| Digest::of(bytes) == *digest))
    }
}

fn commit(sequence: u64, record: Record) -> Option<CommitRecord> {
    match record {
        Record::Commit { cell, epoch, seal, .. } => Some(CommitRecord {
            sequence,
            cell,
            epoch,
            seal,
        }),
        _ => None,
    }
}

fn note(tail: &mut Tail, sequence: u64, record: Record) -> Result<(), Error> {
    tail.next = tail.next.max(sequence + 1);
    if let Some(epoch) = record.epoch() {
        tail.epoch = tail.epoch.max(epoch);
    }
    fn entry<'a>(open: &'a mut Vec<Open>, cell: &CellId, session: Option<SessionName>) -> &'a mut Open {
        let at = open.iter().position(|o| o.cell == *cell).unwrap_or_else(|| {
            let session = session.unwrap_or_default();
            open.push(Open {
                cell: cell.clone(),
                session,
                batches: Vec::new(),
                baseline: None,
                commit: None,
            });
            open.len() - 1
        });
        &mut open[at]
    }
    match record {
        Record::Header { version, .. } if version > JOURNAL_VERSION => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("the journal has version {version}; this build reads up to {JOURNAL_VERSION}"),
            ));
        }
        Record::Header { .. } => {}
        Record::Intents {
            cell, session, batch, ..
        } => entry(&mut tail.open, &cell, Some(session)).batches.push(batch),
        Record::CaptureBegun {
            cell,
            session,
            baseline,
            ..
        } => {
            entry(&mut tail.open, &cell, Some(session)).baseline = Some(baseline);
        }
        Record::CaptureEnded { cell, batch } => {
            let open = entry(&mut tail.open, &cell, None);
            open.baseline = None;
            open.batches.push(batch);
        }
        Record::Withdrawn { cell, tag } => {
            let open = entry(&mut tail.open, &cell, None);
            open.batches.retain(|batch| batch.tag != tag);
            if open.batches.is_empty() && open.baseline.is_none() {
                tail.open.retain(|open| open.cell != cell);
            }
        }
        Record::Commit { cell, epoch, seal, .. } => {
            let record = CommitRecord {
                sequence,
                cell,
                epoch,
                seal,
            };
            // Only what has effects has something left to settle.
            if let Some(open) = tail.open.iter_mut().find(|open| open.cell == record.cell) {
                open.commit = Some(record.clone());
            }
            tail.commits.push(record);
        }
        Record::Settled { cell } | Record::Restored { cell } => tail.open.retain(|open| open.cell != cell),
    }
    Ok(())
}
