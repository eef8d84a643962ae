//! Reads a text once, in bounded memory, and keeps what a projection may show: head, tail, and failures with what
//! surrounds them.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::io::Read;

use zero_contracts::{CancelToken, Error, ErrorKind};

use crate::notable::{Weight, failure_words, shape, weigh};
use crate::retained::{Region, Retained};

/// Bytes read at once.
const CHUNK: usize = 256 * 1024;
/// Lines after a failure that are kept with it.
const AFTER: usize = 7;
/// Of failures of one shape so many are kept.
const OF_ONE_SHAPE: usize = 3;
/// Places with failures that are kept from the start of a text; after them, only new shapes are.
const PLACES: usize = 256;
/// Longest piece of a line that is kept around a failure.
const LONGEST: usize = 4096;
/// Room before what is read, for what is carried over from the chunk before: a failure near a chunk's end is seen whole.
const LEAD: usize = LONGEST * (AFTER + 2);

/// What is kept.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of the head, and of the tail.
    pub end: usize,
    /// Whether failures are looked for.
    pub failures: bool,
}

/// Reads everything.
///
/// # Errors
/// `io`, `corrupt` from the reader; `cancelled` and `deadline` from the token.
pub(crate) fn scan(reader: &mut dyn Read, limits: Limits, token: &CancelToken) -> Result<Retained<'static>, Error> {
    let mut scan = Scan::new(limits);
    loop {
        token.check()?;
        match reader.read(scan.room()) {
            Ok(0) => return Ok(scan.finish()),
            Ok(read) => scan.filled(read),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                return Err(Error::new(ErrorKind::Corrupt, format!("reading an object: {error}")));
            }
            Err(error) => return Err(Error::from_io(&error, "reading an object")),
        }
    }
}

/// A chunk that was read, behind its lead.
struct Chunk {
    buffer: Box<[u8]>,
    read: usize,
}

/// The latest chunks: as many as hold the tail. Their buffers are used again, so that no byte is copied to be kept.
#[derive(Default)]
struct Latest {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    spare: Option<Box<[u8]>>,
}

impl Latest {
    /// A buffer to read the next chunk into.
    fn buffer(&mut self) -> Box<[u8]> {
        self.spare
            .take()
            .unwrap_or_else(|| vec![0; LEAD + CHUNK].into_boxed_slice())
    }

    /// Keeps a chunk, and gives up the oldest one if the others hold `most` bytes.
    fn push(&mut self, chunk: Chunk, most: usize) {
        self.bytes += chunk.read;
        self.chunks.push_back(chunk);
        if let Some(oldest) = self.chunks.front()
            && self.bytes - oldest.read >= most
            && self.chunks.len() > 1
        {
            self.bytes -= oldest.read;
            self.spare = self.chunks.pop_front().map(|oldest| oldest.buffer);
        }
    }

    /// The last `most` bytes.
    fn tail(&self, most: usize) -> Vec<u8> {
        let mut skip = self.bytes.saturating_sub(most);
        let mut tail = Vec::with_capacity(self.bytes - skip);
        for chunk in &self.chunks {
            let dropped = skip.min(chunk.read);
            skip -= dropped;
            tail.extend_from_slice(&chunk.buffer[LEAD + dropped..LEAD + chunk.read]);
        }
        tail
    }
}

/// A text that is being read, a chunk at a time.
pub(crate) struct Scan {
    limits: Limits,
    /// The chunk that is being filled, behind room for what is carried over from the one before.
    buffer: Box<[u8]>,
    filled: usize,
    carried: usize,
    /// Bytes and line feeds before the buffer.
    bytes: u64,
    feeds: u64,
    ends_with_feed: bool,
    head: Vec<u8>,
    places: Vec<Region<'static>>,
    shapes: HashMap<u64, usize>,
    /// Failures before this offset are done.
    done: u64,
    latest: Latest,
}

impl Scan {
    pub(crate) fn new(limits: Limits) -> Self {
        let mut latest = Latest::default();
        Self {
            limits,
            buffer: latest.buffer(),
            filled: 0,
            carried: 0,
            bytes: 0,
            feeds: 0,
            ends_with_feed: true,
            head: Vec::new(),
            places: Vec::new(),
            shapes: HashMap::new(),
            done: 0,
            latest,
        }
    }

    /// Where the next bytes go; never empty.
    fn room(&mut self) -> &mut [u8] {
        &mut self.buffer[LEAD + self.filled..]
    }

    /// Counts bytes that were put there.
    fn filled(&mut self, bytes: usize) {
        self.filled += bytes;
        if self.filled == CHUNK {
            self.end_chunk(false);
        }
    }

    /// Takes the next bytes.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.room();
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            room[..now.len()].copy_from_slice(now);
            self.filled(now.len());
            bytes = later;
        }
    }

    /// Looks at the chunk and begins the next one with what must be seen again.
    fn end_chunk(&mut self, at_end: bool) {
        let next = self.latest.buffer();
        let buffer = std::mem::replace(&mut self.buffer, next);
        let seen = &buffer[LEAD - self.carried..LEAD + self.filled];
        self.look(seen, self.carried, at_end);
        self.carried = self.unfinished(seen);
        self.buffer[LEAD - self.carried..LEAD].copy_from_slice(&seen[seen.len() - self.carried..]);
        let read = std::mem::take(&mut self.filled);
        self.latest.push(Chunk { buffer, read }, self.limits.end);
    }

    /// Looks at a buffer whose first `carried` bytes were in the last one.
    fn look(&mut self, buffer: &[u8], carried: usize, at_end: bool) {
        let new = &buffer[carried..];
        let start = self.bytes - carried as u64;
        let feeds_before = self.feeds - count_feeds(&buffer[..carried]);
        if self.head.len() < self.limits.end {
            self.head
                .extend_from_slice(&new[..new.len().min(self.limits.end - self.head.len())]);
        }
        if self.limits.failures {
            self.find(buffer, start, feeds_before, at_end);
        }
        self.bytes += new.len() as u64;
        self.feeds += count_feeds(new);
        if let Some(last) = new.last() {
            self.ends_with_feed = *last == b'\n';
        }
    }

    /// How many of the buffer's last bytes the next one must start with.
    fn unfinished(&self, buffer: &[u8]) -> usize {
        if !self.limits.failures {
            return 0;
        }
        // From the line before the last that was not looked at.
        (buffer.len() - settled(buffer)).min(LEAD)
    }

    /// Keeps the failures of a buffer, but for the last lines, whose surroundings may not be there yet.
    fn find(&mut self, buffer: &[u8], start: u64, feeds_before: u64, at_end: bool) {
        let end = if at_end { buffer.len() } else { lookable(buffer) };
        let mut feeds = feeds_before;
        let mut counted = 0;
        let mut at = usize::try_from(self.done.saturating_sub(start))
            .unwrap_or(usize::MAX)
            .min(end);
        while at < end {
            let Some(found) = failure_words().find(aho_corasick::Input::new(buffer).range(at..end)) else {
                break;
            };
            let line_start = memchr::memrchr(b'\n', &buffer[..found.start()]).map_or(0, |feed| feed + 1);
            let line_start = line_start.max(found.start().saturating_sub(LONGEST));
            let line_end = line_after(buffer, found.start());
            let line = &buffer[line_start..line_end];
            at = line_end;
            if weigh(line) < Weight::Result {
                continue;
            }
            let count = self.shapes.entry(shape(line)).or_default();
            *count += 1;
            if *count > OF_ONE_SHAPE || (self.places.len() >= PLACES && *count > 1) || self.places.len() >= 2 * PLACES {
                continue;
            }
            let before = memchr::memrchr(b'\n', &buffer[..line_start.saturating_sub(1)]).map_or(0, |feed| feed + 1);
            let from = if line_start - before <= LONGEST && before < line_start {
                before
            } else {
                line_start
            };
            let mut to = line_end;
            for _ in 0..AFTER {
                let next = line_after(buffer, to);
                if next - to > LONGEST || buffer[to..next].trim_ascii().is_empty() {
                    break;
                }
                to = next;
            }
            feeds += count_feeds(&buffer[counted..from]);
            counted = from;
            let starts_line = from == 0 && start == 0 || from > 0 && buffer[from - 1] == b'\n';
            self.places.push(Region {
                start: start + from as u64,
                first_line: feeds + 1,
                starts_line,
                bytes: Cow::Owned(buffer[from..to].to_vec()),
            });
            // What was kept is looked at again only for the shapes in it.
            at = line_end;
        }
        self.done = start + at.max(end) as u64;
    }

    /// Gives what was kept, once everything was taken.
    pub(crate) fn finish(mut self) -> Retained<'static> {
        self.end_chunk(true);
        let lines = self.feeds + u64::from(!self.ends_with_feed);
        let tail = self.latest.tail(self.limits.end);
        let tail_start = self.bytes - tail.len() as u64;
        if (self.head.len() as u64) < self.bytes
            && let Some(feed) = memchr::memrchr(b'\n', &self.head)
        {
            self.head.truncate(feed + 1);
        }
        let mut regions = vec![Region {
            start: 0,
            first_line: 1,
            starts_line: true,
            bytes: Cow::Owned(std::mem::take(&mut self.head)),
        }];
        regions.append(&mut self.places);
        let tail_line = self.feeds - count_feeds(&tail) + 1;
        regions.push(Region {
            start: tail_start,
            first_line: tail_line,
            // Set below, once the first whole line is found.
            starts_line: false,
            bytes: Cow::Owned(tail),
        });
        if let Some(tail) = regions.last_mut() {
            start_at_line(tail);
        }
        Retained {
            bytes: self.bytes,
            lines,
            regions: without_overlap(regions),
        }
    }
}

/// Cuts a region down to its first line start, if it has one.
fn start_at_line(region: &mut Region<'static>) {
    if region.start == 0 {
        region.starts_line = true;
        return;
    }
    let skip = memchr::memchr(b'\n', &region.bytes)
        .map(|feed| feed + 1)
        .filter(|feed| *feed < region.bytes.len());
    if let Some(skip) = skip {
        region.bytes.to_mut().drain(..skip);
        region.start += skip as u64;
        region.first_line += 1;
        region.starts_line = true;
    } else {
        // One long line: at least no character is parted.
        let skip = region
            .bytes
            .iter()
            .take(3)
            .take_while(|byte| **byte & 0xc0 == 0x80)
            .count();
        region.bytes.to_mut().drain(..skip);
        region.start += skip as u64;
    }
}

/// Shortens or joins regions so that none overlaps the one before it.
fn without_overlap(mut regions: Vec<Region<'static>>) -> Vec<Region<'static>> {
    regions.sort_by_key(|region| region.start);
    let mut apart: Vec<Region<'static>> = Vec::new();
    for mut region in regions {
        if let Some(last) = apart.last_mut() {
            let end = last.start + last.bytes.len() as u64;
            if region.start <= end {
                let overlap = (end - region.start) as usize;
                if overlap < region.bytes.len() {
                    last.bytes.to_mut().extend_from_slice(&region.bytes[overlap..]);
                }
                continue;
            }
        }
        if !region.bytes.is_empty() {
            region.bytes.to_mut().shrink_to_fit();
            apart.push(region);
        }
    }
    apart
}

fn count_feeds(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Returns the start of the line after the one that `at` lies on, or the end.
fn line_after(buffer: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &buffer[at..]).map_or(buffer.len(), |feed| at + feed + 1)
}

/// Returns where the last lines start that cannot be looked at before more is read.
fn lookable(buffer: &[u8]) -> usize {
    let mut at = buffer.len();
    for _ in 0..=AFTER + 1 {
        match memchr::memrchr(b'\n', &buffer[..at.saturating_sub(1)]) {
            Some(feed) if buffer.len() - feed <= LONGEST * (AFTER + 1) => at = feed + 1,
            _ => break,
        }
    }
    at
}

/// Returns where the line before those starts.
fn settled(buffer: &[u8]) -> usize {
    let at = lookable(buffer);
    memchr::memrchr(b'\n', &buffer[..at.saturating_sub(1)]).map_or(0, |feed| feed + 1)
}
