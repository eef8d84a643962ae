//! Keeping the store small and sound: collection of objects, pruning of the journal, verification.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use zero_contracts::files::{Collected, Damage};
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, Handle};

use crate::engine::Shared;
use crate::node::{Node, now};
use crate::record::{Effect, Record};
use crate::snapshot::decode;
use crate::store::Unsynced;

/// Objects up to this size are searched for the digests they name.
const SEARCHED: u64 = 16 << 20;

/// The store's file that says at which number the journal begins.
const PRUNED: &str = "pruned";

/// How an object was reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// As the bytes of a file: they name nothing.
    Leaf,
    /// As a record that may name others.
    Record,
}

struct Marks<'a> {
    shared: &'a Shared,
    known: HashSet<Digest>,
    /// What they name is not followed.
    opaque: HashSet<Digest>,
    reached: HashMap<Digest, Reach>,
    todo: Vec<Digest>,
}

impl Marks<'_> {
    fn leaf(&mut self, node: Option<&Node>) {
        if let Some(Node::File { digest, .. }) = node {
            self.reached.entry(*digest).or_insert(Reach::Leaf);
        }
    }

    fn record(&mut self, digest: Digest) {
        if self.opaque.contains(&digest) {
            self.reached.entry(digest).or_insert(Reach::Leaf);
            return;
        }
        if self.reached.insert(digest, Reach::Record) != Some(Reach::Record) {
            self.todo.push(digest);
        }
    }

    fn journal(&mut self) -> Result<(), Error> {
        for segment in self.shared.journal.segments()? {
            for (_, _, record) in self.shared.journal.scan_segment(segment)?.records {
                for object in record.objects() {
                    self.record(object.digest);
                }
                match record {
                    Record::Intents { batch, .. } | Record::CaptureEnded { batch, .. } => {
                        for effect in &batch.effects {
                            match effect {
                                Effect::Create { after, .. } => self.leaf(Some(after)),
                                Effect::Replace { before, after, .. } | Effect::Chmod { before, after, .. } => {
                                    self.leaf(Some(before));
                                    self.leaf(Some(after));
                                }
                                Effect::Remove { before, .. } | Effect::Rename { before, .. } => {
                                    self.leaf(Some(before))
                                }
                                Effect::Captured { before, after, .. } => {
                                    self.leaf(before.as_ref());
                                    self.leaf(after.as_ref());
                                }
                            }
                        }
                    }
                    Record::CaptureBegun { baseline, .. } => self.record(baseline),
                    Record::Commit { seal, .. } => {
                        self.record(seal.event);
                        seal.state
                            .into_iter()
                            .chain(seal.intents)
                            .for_each(|digest| self.record(digest));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Follows records to what they name: the nodes of a manifest, and anywhere else every run of exactly 64 lowercase
    /// hexadecimal digits that is an object's name, which is how events, handles and receipts write digests.
    fn follow(&mut self, token: &CancelToken) -> Result<(), Error> {
        while let Some(digest) = self.todo.pop() {
            token.check()?;
            if self.shared.store.size(&digest)?.unwrap_or(u64::MAX) > SEARCHED {
                continue;
            }
            // A damaged record names nothing any more; it is kept itself.
            let Ok(bytes) = self.shared.store.get(&digest) else {
                continue;
            };
            if let Some(manifest) = decode(&bytes) {
                manifest.iter().for_each(|(_, node)| self.leaf(Some(node)));
                continue;
            }
            for named in digests_in(&bytes) {
                if self.known.contains(&named) {
                    self.record(named);
                }
            }
        }
        Ok(())
    }
}

/// Every run of exactly 64 lowercase hexadecimal digits.
fn digests_in(bytes: &[u8]) -> impl Iterator<Item = Digest> {
    let hex = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    let runs = bytes.chunk_by(move |a, b| hex(a) == hex(b));
    runs.filter(|run| run.len() == 64)
        .filter_map(|run| std::str::from_utf8(run).ok()?.parse().ok())
}

/// Removes objects that nothing reaches. Needs to be alone: no transaction is alive in any process.
pub(crate) fn collect(
    shared: &Shared,
    roots: &[Digest],
    opaque: &[Digest],
    token: &CancelToken,
) -> Result<Collected, Error> {
    let Some(_alone) = shared.live_lock(true, false)? else {
        return Err(Error::new(
            ErrorKind::Busy,
            "cells are alive in this workspace; collect when they have ended",
        ));
    };
    let objects = shared.store.walk()?;
    let known = objects.iter().map(|object| object.0).collect();
    let mut marks = Marks {
        shared,
        known,
        opaque: opaque.iter().copied().collect(),
        reached: HashMap::new(),
        todo: Vec::new(),
    };
    roots.iter().for_each(|root| marks.record(*root));
    marks.journal()?;
    marks.follow(token)?;
    let young = now() - shared.config.young.as_nanos() as i128;
    let mut collected = Collected::default();
    let mut used = 0;
    let garbage = |object: &&(Digest, u64, i128)| !marks.reached.contains_key(&object.0) && object.2 <= young;
    if objects.iter().any(|object| garbage(&object)) {
        // Before the first object goes: what names them must not be trusted any more.
        shared.cache.drop_all(shared)?;
    }
    for object in &objects {
        token.check()?;
        if garbage(&object) && shared.store.remove(&object.0, young)? {
            collected.removed += 1;
            collected.freed_bytes += object.1;
        } else {
            collected.kept += 1;
            used += object.1;
        }
    }
    shared.store.sweep_temporaries(young)?;
    shared.store.save_usage(Some(used));
    Ok(collected)
}

/// Removes segments, the oldest first, whose commits are all at or before a number. Small objects they carry become
/// objects of the store before that.
pub(crate) fn prune(shared: &Shared, sequence: u64) -> Result<(), Error> {
    let segments = shared.journal.segments()?;
    let open = shared.journal.open()?;
    for pair in segments.windows(2) {
        let scan = shared.journal.scan_segment(pair[0])?;
        let keep = scan.records.iter().any(|(_, number, record)| match record {
            Record::Commit { cell, .. } => *number > sequence || open.iter().any(|open| open.cell == *cell),
            _ => false,
        });
        if keep {
            break;
        }
        let mut objects = Unsynced::default();
        for (_, _, record) in &scan.records {
            for object in record.objects() {
                shared.store.put(&object.bytes)?;
                objects.list.push((object.digest, object.bytes.len() as u64));
            }
        }
        if shared.power() {
            shared.store.make_durable(&objects)?;
        }
        shared
            .store
            .write_file(PRUNED, format!("{}\n", pair[1]).as_bytes(), shared.power())?;
        shared.journal.remove_segment(pair[0], shared.power())?;
    }
    Ok(())
}

/// Reads everything and compares it with its digest or checksum.
pub(crate) fn verify(shared: &Shared, token: &CancelToken) -> Result<Vec<Damage>, Error> {
    let mut damage = Vec::new();
    let mut buffer = vec![0; 256 * 1024];
    for (digest, _, _) in shared.store.walk()? {
        token.check()?;
        let checked = shared.store.open(&digest).and_then(|mut object| {
            loop {
                token.check()?;
                match object.read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(e) => return Err(crate::store::from_writer(e)),
                }
            }
        });
        match checked {
            Ok(()) => {}
            Err(e) if matches!(e.kind, ErrorKind::Cancelled | ErrorKind::Deadline) => return Err(e),
            Err(e) => damage.push(Damage {
                what: Handle::blob(digest).to_string(),
                detail: e.detail,
            }),
        }
    }
    verify_journal(shared, token, &mut damage)?;
    Ok(damage)
}

/// Compares what the journal holds with its checksums, and with the numbers that it has to hold: from the first that was
/// not pruned on, each is there once. (What a crash may take from the very end is missed only if somebody has seen it.)
fn verify_journal(shared: &Shared, token: &CancelToken, damage: &mut Vec<Damage>) -> Result<(), Error> {
    let pruned = shared.store.read_file(PRUNED)?;
    let first = pruned.and_then(|bytes| String::from_utf8(bytes).ok()?.trim().parse().ok());
    let mut next: u64 = first.unwrap_or(1);
    let mut lost = |what: String, from: u64, to: u64| {
        damage.push(Damage {
            what,
            detail: format!("the records {from} to {to} are missing"),
        });
    };
    // Asked before anything is read: what is committed meanwhile may be seen, too.
    let seen = shared.journal.seen();
    let segments = shared.journal.segments()?;
    let mut found = Vec::new();
    for &segment in &segments {
        token.check()?;
        if segment > next {
            lost(format!("journal before segment {segment:016x}"), next, segment - 1);
        }
        // A segment that was to be pruned and is still there begins earlier.
        next = segment;
        let scan = shared.journal.scan_segment(segment)?;
        for (_, number, _) in &scan.records {
            if *number > next && scan.damage.is_empty() {
                lost(format!("journal segment {segment:016x}"), next, number - 1);
            }
            next = number + 1;
        }
        found.extend(scan.damage.into_iter().map(|(at, detail)| Damage {
            what: format!("journal segment {segment:016x} at byte {at}"),
            detail,
        }));
    }
    if next <= seen && next > first.unwrap_or(1) {
        lost("journal at its end".into(), next, seen);
    }
    damage.extend(found);
    if next <= first.unwrap_or(1) {
        // A store is made with a journal that holds a record, and the last segment is never pruned.
        damage.push(Damage {
            what: "journal".into(),
            detail: "it holds no record: it was emptied".into(),
        });
    }
    Ok(())
}
