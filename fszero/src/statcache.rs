//! Taking a snapshot, and the stat cache that makes the second one cost a stat per file.
//!
//! The cache maps a path to a hash of its stat data and the digest of the bytes that were stored when it was read. A
//! file that was changed so shortly before it was read that another change might not show in its times is not cached
//! (git's racy-timestamp rule). The cache is a hint in the store: missing or damaged, it costs a full read; collection
//! drops it, so that whatever it names is in the store.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use zero_contracts::objects::ObjectWriter as _;
use zero_contracts::read::EntryKind;
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, WorkspacePath};

use crate::engine::{FsZero, Shared};
use crate::node::{Meta, Node, now};
use crate::overlay::Overlay;
use crate::retained::{self, is_git_object};
use crate::rules::Overrides;
use crate::snapshot::{Manifest, SnapshotView};
use crate::tree::{changing, os};
use crate::view::View;
use crate::walk::{self, Met, Want};

const FILE: &str = "statcache";
const MAGIC: &[u8; 4] = b"FZS1";

/// Files up to this size are stored from memory.
const MEMORY_BYTES: u64 = 1 << 20;

type Map = HashMap<WorkspacePath, (u128, Digest)>;

#[derive(Default)]
pub(crate) struct StatCache {
    map: Mutex<Option<Arc<Map>>>,
}

impl StatCache {
    fn load(&self, shared: &Shared) -> Arc<Map> {
        let mut map = self.map.lock().unwrap_or_else(PoisonError::into_inner);
        // Collection, perhaps in another process, removes the file: then what is in memory is void, too.
        let file = shared.store.has_file(FILE);
        match &*map {
            Some(map) if file => Arc::clone(map),
            _ => {
                let bytes = shared.store.read_file(FILE).ok().flatten().unwrap_or_default();
                let entries: Option<Vec<(WorkspacePath, u128, Digest)>> = bytes
                    .strip_prefix(MAGIC)
                    .and_then(|bytes| postcard::from_bytes(bytes).ok());
                let loaded: Map = entries
                    .unwrap_or_default()
                    .into_iter()
                    .map(|(p, s, d)| (p, (s, d)))
                    .collect();
                let loaded = Arc::new(loaded);
                *map = Some(Arc::clone(&loaded));
                loaded
            }
        }
    }

    fn save(&self, shared: &Shared, new: Map) {
        let mut entries: Vec<(&WorkspacePath, u128, Digest)> = new.iter().map(|(p, (s, d))| (p, *s, *d)).collect();
        entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
        if let Ok(bytes) = postcard::to_extend(&entries, MAGIC.to_vec()) {
            // A cache that cannot be written is one that will be missed.
            let _ = shared.store.write_file(FILE, &bytes, false);
        }
        *self.map.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(new));
    }

    /// Forgets everything, for all processes.
    pub fn drop_all(&self, shared: &Shared) -> Result<(), Error> {
        *self.map.lock().unwrap_or_else(PoisonError::into_inner) = None;
        shared.store.remove_file(FILE)
    }
}

/// Stores the bytes of a live file; returns its node.
fn store_file(shared: &Shared, path: &WorkspacePath, token: &CancelToken) -> Result<Option<(Node, Meta)>, Error> {
    for _ in 0..3 {
        let (mut file, before) = match shared.tree.open_file(path) {
            Err(e) if e.kind == ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let (digest, bytes) = if before.size <= MEMORY_BYTES {
            let mut content = Vec::with_capacity(before.size as usize + 1);
            std::io::Read::read_to_end(&mut file, &mut content).map_err(|e| crate::tree::io(&e, "reading", path))?;
            (shared.store.put(&content)?, content.len() as u64)
        } else {
            let mut writer = shared.store.writer_of()?;
            crate::text::splice(&[], &mut file, &mut writer, token)?;
            Box::new(writer).finish()?
        };
        let after = Meta::new(&rustix::fs::fstat(&file).map_err(|e| os(e, "reading", path))?);
        if after == before && bytes == after.size {
            return Ok(Some((
                Node::File {
                    mode: after.mode,
                    digest,
                    bytes,
                },
                after,
            )));
        }
    }
    Err(changing(path))
}

/// What a survey of the tree found.
pub(crate) struct Survey {
    /// Tracked entries, in the order of the paths.
    pub tracked: Manifest,
    /// Stamps of ignored files, by path; only if asked for.
    pub ignored: HashMap<WorkspacePath, u128>,
    /// It was stopped: the tree is above the limits.
    pub too_large: bool,
}

/// What a survey looks at.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// `.git` too, except the objects of git (which are recorded by name and size only).
    pub git: bool,
    /// Stamps of ignored files too.
    pub ignored: bool,
    /// More tracked files, or more bytes in them, than this stop the survey.
    pub files: u64,
    pub bytes: u64,
    /// Where ignore rules come from, if not from the live tree.
    pub rules: Option<&'a SnapshotView>,
    /// Rule files that count with another text than they have.
    pub overrides: Option<&'a Overrides>,
}

#[derive(Default)]
struct Gathered {
    tracked: Manifest,
    fresh: Vec<(WorkspacePath, (u128, Digest))>,
    ignored: HashMap<WorkspacePath, u128>,
    files: u64,
    bytes: u64,
    too_large: bool,
    error: Option<Error>,
}

impl Gathered {
    /// Adds what a piece of a directory gave.
    fn add(&mut self, piece: Self) {
        self.tracked.extend(piece.tracked);
        self.fresh.extend(piece.fresh);
        self.ignored.extend(piece.ignored);
        self.files += piece.files;
        self.bytes += piece.bytes;
    }
}

/// Records the tree; bytes of tracked files are in the store afterwards.
pub(crate) fn survey(shared: &Arc<Shared>, scope: Scope<'_>, token: &CancelToken) -> Result<Survey, Error> {
    let cache = shared.cache.load(shared);
    let gathered = Mutex::new(Gathered::default());
    let view = View {
        shared: Arc::clone(shared),
        overlay: Overlay::default(),
        live: true,
    };
    let want = Want {
        ignored: scope.ignored,
        git: scope.git,
        rule_files: scope.git,
        rules: scope.rules,
        overrides: scope.overrides,
        depth: None,
    };
    let lock = || gathered.lock().unwrap_or_else(PoisonError::into_inner);
    let skipped = walk::run(&view, &WorkspacePath::root(), want, token, &|mut met| {
        // The whole is sorted at last, which costs least if the pieces are in order.
        met.sort_unstable_by(|a, b| a.entry.path.cmp(&b.entry.path));
        let has_git = |path: &WorkspacePath| path.components().any(|name| name == b".git");
        let below_git = scope.git
            && met
                .first()
                .and_then(|met| met.entry.path.parent())
                .is_some_and(|up| has_git(&up));
        let mut piece = Gathered::default();
        for met in met {
            let in_git = below_git || (scope.git && met.entry.path.file_name() == Some(b".git"));
            if met.ignored && !in_git {
                if met.entry.kind != EntryKind::Directory {
                    piece.ignored.insert(met.entry.path, met.entry.stamp.value);
                }
                continue;
            }
            if met.entry.bytes > MEMORY_BYTES {
                // Before another large one is stored.
                let gathered = lock();
                if gathered.bytes + piece.bytes + met.entry.bytes > scope.bytes {
                    drop(gathered);
                    lock().too_large = true;
                    return ControlFlow::Break(());
                }
            }
            let recorded = match (record(shared, &cache, &met, in_git, token), &met.meta) {
                // A baseline holds what it can of a file that may not be read; a snapshot has to hold the bytes.
                (Err(e), Some(meta)) if scope.git && e.kind == ErrorKind::Denied && meta.kind == EntryKind::File => {
                    Ok(Some((meta.unreadable(), None)))
                }
                (recorded, _) => recorded,
            };
            match recorded {
                Ok(Some((node, fresh))) => {
                    if let Node::File { bytes, .. } = &node {
                        piece.files += 1;
                        piece.bytes += bytes;
                    }
                    if let Some(fresh) = fresh {
                        piece.fresh.push((met.entry.path.clone(), fresh));
                    }
                    piece.tracked.push((met.entry.path, node));
                }
                Ok(None) => {}
                Err(e) => {
                    lock().error = Some(e);
                    return ControlFlow::Break(());
                }
            }
        }
        let mut gathered = lock();
        gathered.add(piece);
        if gathered.files > scope.files || gathered.bytes > scope.bytes {
            gathered.too_large = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    let mut gathered = gathered.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = gathered.error {
        return Err(error);
    }
    if let Some(skipped) = skipped.into_iter().next() {
        // What cannot be listed cannot be restored either.
        return Err(Error::new(
            ErrorKind::Denied,
            format!("`{}` cannot be read: {}", skipped.path, skipped.why),
        )
        .with_path(skipped.path));
    }
    if scope.git {
        let mode = crate::widen::root_mode(shared)?;
        gathered.tracked.push((WorkspacePath::root(), Node::Directory { mode }));
    }
    // Made of pieces in order, which this sort makes use of.
    gathered.tracked.sort_by(|a, b| a.0.cmp(&b.0));
    if !gathered.fresh.is_empty() {
        let mut map = Map::clone(&cache);
        map.extend(gathered.fresh);
        // Paths that are gone go from the cache when it is mostly of them.
        if map.len() > 2 * gathered.tracked.len() + 1000 {
            let present: std::collections::HashSet<&WorkspacePath> = gathered.tracked.iter().map(|(p, _)| p).collect();
            map.retain(|path, _| present.contains(path));
        }
        shared.cache.save(shared, map);
    }
    Ok(Survey {
        tracked: gathered.tracked,
        ignored: gathered.ignored,
        too_large: gathered.too_large,
    })
}

type Recorded = Option<(Node, Option<(u128, Digest)>)>;

fn record(shared: &Shared, cache: &Map, met: &Met, in_git: bool, token: &CancelToken) -> Result<Recorded, Error> {
    let path = &met.entry.path;
    Ok(match met.entry.kind {
        EntryKind::Directory => Some((Node::Directory { mode: met.entry.mode }, None)),
        EntryKind::Symlink => match shared.tree.link(path) {
            Ok(target) => Some((Node::Symlink { target }, None)),
            Err(_) => None,
        },
        EntryKind::Other => None,
        EntryKind::File if in_git && is_git_object(path) => {
            // Its name stands for its content.
            met.meta.as_ref().map(|meta| (retained::node(path, meta), None))
        }
        EntryKind::File => {
            if let (Some(meta), Some((stamp, digest))) = (&met.meta, cache.get(path))
                && *stamp == meta.stamp_value()
            {
                return Ok(Some((
                    Node::File {
                        mode: meta.mode,
                        digest: *digest,
                        bytes: meta.size,
                    },
                    None,
                )));
            }
            let started = now();
            match store_file(shared, path, token)? {
                None => None,
                Some((node, meta)) => {
                    let digest = node.digest().filter(|_| meta.settled_at(started));
                    Some((node, digest.map(|digest| (meta.stamp_value(), digest))))
                }
            }
        }
    })
}

impl FsZero {
    pub(crate) fn take_snapshot(&self, token: &CancelToken) -> Result<Manifest, Error> {
        let scope = Scope {
            git: false,
            ignored: false,
            files: u64::MAX,
            bytes: u64::MAX,
            rules: None,
            overrides: None,
        };
        Ok(survey(&self.shared, scope, token)?.tracked)
    }
}
