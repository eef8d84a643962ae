//! The form of one generation on disk.
//!
//! A head (magic, version of the extractor), frames of facts, one frame of contents that says where they are, and a tail
//! that says where that is. A frame is its length (4 bytes, little-endian), 8 bytes of the BLAKE3 of its payload, and the payload in
//! postcard. Every check that fails makes the frame, or the whole file, count as not there.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use zero_contracts::{Digest, Error, ErrorKind, WorkspacePath};

use super::Key;
use super::map::Map;
use crate::facts::FileFacts;

const MAGIC: &[u8; 8] = b"GZFACT01";
const END: &[u8; 8] = b"GZEND001";
const HEAD: usize = 24;
const TAIL: usize = 16;
const FRAME: usize = 12;

/// Extension of a generation that is being written.
pub const UNFINISHED: &str = "unfinished";

/// Where everything is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contents {
    /// Offset of the frame of each content's facts.
    pub facts: Vec<(Key, u64)>,
    /// Contents of paths.
    pub stamps: Vec<KnownStamp>,
}

/// The content that a path had under a settled stamp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownStamp {
    /// The path.
    pub path: WorkspacePath,
    /// The stamp.
    pub stamp: u128,
    /// The content.
    pub key: Key,
}

/// A generation that was found whole.
#[derive(Debug)]
pub struct Generation {
    map: Map,
    /// Where everything is.
    pub contents: Contents,
}

impl Generation {
    /// Opens a generation; none if it is damaged, of another version or gone.
    pub fn open(path: &Path, version: [u8; 16]) -> Option<Self> {
        let map = Map::open(path).ok()?;
        if map.get(..8)? != MAGIC || map.get(8..HEAD)? != version {
            return None;
        }
        let tail = map.get(map.len().checked_sub(TAIL)?..)?;
        if &tail[8..] != END {
            return None;
        }
        let at = u64::from_le_bytes(tail[..8].try_into().ok()?);
        let contents = postcard::from_bytes(checked(&map, at)?).ok()?;
        Some(Self { map, contents })
    }

    /// Returns the payload of a frame, if it is undamaged.
    pub fn frame(&self, at: u64) -> Option<&[u8]> {
        checked(&self.map, at)
    }

    /// Returns the facts in a frame.
    pub fn facts(&self, at: u64) -> Option<FileFacts> {
        postcard::from_bytes(self.frame(at)?).ok()
    }

    /// Returns the size of the file.
    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
    }
}

fn checked(map: &[u8], at: u64) -> Option<&[u8]> {
    let rest = map.get(usize::try_from(at).ok()?..)?;
    let length = u32::from_le_bytes(rest.get(..4)?.try_into().ok()?) as usize;
    let payload = rest.get(FRAME..FRAME.checked_add(length)?)?;
    (rest[4..FRAME] == check(payload)).then_some(payload)
}

fn check(payload: &[u8]) -> [u8; 8] {
    let mut check = [0; 8];
    check.copy_from_slice(&Digest::of(payload).as_bytes()[..8]);
    check
}

/// Writes facts as they stand in a frame.
///
/// # Errors
/// `internal` if they cannot be written, which their types do not allow.
pub fn encode(facts: &FileFacts) -> Result<Vec<u8>, Error> {
    postcard::to_stdvec(facts).map_err(|error| Error::new(ErrorKind::Internal, format!("encoding facts: {error}")))
}

/// A generation in the making. Dropped before it is finished, it leaves nothing behind; killed, a file of another name.
pub struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    at: u64,
    finished: bool,
}

impl Writer {
    /// Begins a generation beside its later name.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn create(directory: &Path, version: [u8; 16]) -> std::io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("{}-{next}.{UNFINISHED}", std::process::id()));
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&path)?);
        file.write_all(MAGIC)?;
        file.write_all(&version)?;
        Ok(Self {
            path,
            file,
            at: HEAD as u64,
            finished: false,
        })
    }

    /// Adds a frame; returns its offset.
    ///
    /// # Errors
    /// Errors of the file system; a payload of 4 GiB or more.
    pub fn frame(&mut self, payload: &[u8]) -> std::io::Result<u64> {
        let length = u32::try_from(payload.len()).map_err(|_| std::io::ErrorKind::FileTooLarge)?;
        self.file.write_all(&length.to_le_bytes())?;
        self.file.write_all(&check(payload))?;
        self.file.write_all(payload)?;
        let at = self.at;
        self.at += (FRAME + payload.len()) as u64;
        Ok(at)
    }

    /// Ends the generation; returns where it lies.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn finish(mut self, contents: &Contents) -> std::io::Result<PathBuf> {
        let payload = postcard::to_stdvec(contents).map_err(std::io::Error::other)?;
        let at = self.frame(&payload)?;
        self.file.write_all(&at.to_le_bytes())?;
        self.file.write_all(END)?;
        // Not synced: what a power cut leaves of it fails its checks, and is parsed again.
        self.file.flush()?;
        self.finished = true;
        Ok(self.path.clone())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.finished {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
