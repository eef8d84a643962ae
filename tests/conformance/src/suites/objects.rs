//! What an [`ObjectStore`] promises.

use std::io::Read;
use std::sync::Arc;

use zero_contracts::{ByteRange, CancelToken, Digest, ErrorKind, ObjectStore};

use crate::report::{self, Checked, Checks, Report, ensure, refused, same};

/// A store, and what somebody else may do to it.
pub trait Objects {
    /// The store.
    fn store(&self) -> Arc<dyn ObjectStore>;

    /// Changes a byte of a stored object behind the store's back.
    fn damage(&self, digest: &Digest);
}

/// Runs the suite against fresh stores.
pub fn run(fresh: &dyn Fn() -> Box<dyn Objects>) -> Report {
    report::run("ObjectStore", CHECKS, fresh)
}

const CHECKS: &Checks<dyn Objects> = &[
    ("what is put comes back", comes_back),
    ("a digest names the bytes", names_the_bytes),
    ("the same bytes may be put again", put_again),
    ("an empty object is an object", empty),
    ("what was never stored is not found", not_found),
    ("a damaged object is corrupt", damaged),
    ("reading in pieces gives the same bytes", pieces),
    ("a damaged object fails its last read", damaged_pieces),
    ("a range is half-open and cut at the end", range),
    ("a range that starts past the end is invalid", range_past_the_end),
    ("a size is told without reading", size),
    ("a writer stores what was written", writer),
    ("a writer that is dropped stores nothing", dropped_writer),
    ("a reader is stored whole", put_from),
    ("storing from a reader can be cancelled", put_from_cancelled),
    ("an error of the reader stores nothing", put_from_failing),
    ("it can be used from several threads", threads),
];

fn sample(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n * 7 + n / 251) as u8).collect()
}

fn comes_back(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    for length in [1, 100, 70_000, 300_000] {
        let bytes = sample(length);
        let digest = store.put(&bytes)?;
        ensure!(store.get(&digest)? == bytes, "{length} bytes came back otherwise");
    }
    Ok(())
}

fn names_the_bytes(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    for bytes in [&b"a"[..], b"b", b"\x00\xff"] {
        same!(store.put(bytes)?, Digest::of(bytes), "the digest");
    }
    Ok(())
}

fn put_again(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    let first = store.put(b"twice")?;
    same!(store.put(b"twice")?, first, "the second digest");
    same!(store.get(&first)?, b"twice".to_vec(), "the bytes");
    Ok(())
}

fn empty(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    let digest = store.put(b"")?;
    same!(store.get(&digest)?, Vec::<u8>::new(), "its bytes");
    same!(store.size(&digest)?, Some(0), "its size");
    Ok(())
}

fn not_found(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    let digest = Digest::of(b"never stored");
    let kinds = &[ErrorKind::NotFound];
    refused(store.get(&digest), kinds, "getting it")?;
    refused(store.open(&digest).map(drop), kinds, "opening it")?;
    refused(
        store.get_range(&digest, ByteRange::new(0, 1)?),
        kinds,
        "getting a part of it",
    )?;
    same!(store.size(&digest)?, None, "its size");
    Ok(())
}

fn damaged(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    let digest = store.put(&sample(5_000))?;
    subject.damage(&digest);
    refused(store.get(&digest), &[ErrorKind::Corrupt], "getting it")
}

fn pieces(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    let bytes = sample(200_000);
    let digest = store.put(&bytes)?;
    let mut back = Vec::new();
    store.open(&digest)?.read_to_end(&mut back)?;
    ensure!(back == bytes, "{} bytes came back otherwise", bytes.len());
    Ok(())
}

fn damaged_pieces(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    let digest = store.put(&sample(5_000))?;
    subject.damage(&digest);
    match store.open(&digest) {
        Err(e) if e.kind == ErrorKind::Corrupt => Ok(()),
        opened => {
            let read = opened?.read_to_end(&mut Vec::new());
            let kind = read.err().map(|e| e.kind());
            same!(kind, Some(std::io::ErrorKind::InvalidData), "the error");
            Ok(())
        }
    }
}

fn range(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    let digest = store.put(b"0123456789")?;
    for (start, end, wanted) in [(0, 4, "0123"), (4, 4, ""), (7, 10, "789"), (8, 99, "89"), (10, 12, "")] {
        let part = store.get_range(&digest, ByteRange::new(start, end)?)?;
        same!(String::from_utf8_lossy(&part), wanted, format!("[{start}, {end}]"));
    }
    Ok(())
}

fn range_past_the_end(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    let digest = store.put(b"0123456789")?;
    refused(
        store.get_range(&digest, ByteRange::new(11, 12)?),
        &[ErrorKind::InvalidInput],
        "it",
    )
}

fn size(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    let digest = store.put(&sample(4_321))?;
    same!(store.size(&digest)?, Some(4_321), "the size");
    Ok(())
}

fn writer(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    let bytes = sample(150_000);
    let mut writer = store.writer()?;
    for piece in bytes.chunks(33_333) {
        writer.write_all(piece)?;
    }
    let (digest, length) = writer.finish()?;
    same!((digest, length), (Digest::of(&bytes), 150_000), "digest and size");
    ensure!(store.get(&digest)? == bytes, "the bytes came back otherwise");
    Ok(())
}

fn dropped_writer(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    let mut writer = store.writer()?;
    writer.write_all(b"given up")?;
    drop(writer);
    same!(
        store.size(&Digest::of(b"given up"))?,
        None,
        "the size of what was given up"
    );
    Ok(())
}

fn put_from(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    let bytes = sample(400_000);
    let (digest, length) = store.put_from(&mut &bytes[..], &CancelToken::new())?;
    same!((digest, length), (Digest::of(&bytes), 400_000), "digest and size");
    ensure!(store.get(&digest)? == bytes, "the bytes came back otherwise");
    Ok(())
}

fn put_from_cancelled(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    let token = CancelToken::new();
    token.cancel();
    let stored = store.put_from(&mut &sample(400_000)[..], &token);
    refused(stored, &[ErrorKind::Cancelled], "it")
}

struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::Error::other("the source is gone"));
        }
        self.0 -= 1;
        buffer.fill(b'x');
        Ok(buffer.len())
    }
}

fn put_from_failing(subject: &dyn Objects) -> Checked {
    let stored = subject.store().put_from(&mut Failing(2), &CancelToken::new());
    refused(stored, &[ErrorKind::Io], "it")
}

fn threads(subject: &dyn Objects) -> Checked {
    let store = subject.store();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4_u8)
            .map(|n| {
                let store = &store;
                scope.spawn(move || -> Checked {
                    for m in 0..20_u8 {
                        let digest = store.put(&[n % 2, m])?;
                        same!(store.get(&digest)?, vec![n % 2, m], "the bytes");
                    }
                    Ok(())
                })
            })
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
