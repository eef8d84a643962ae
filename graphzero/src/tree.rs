//! The files of a view as one query sees them, and what is remembered of them between queries.
//!
//! Freshness needs no watcher: every query walks its scope, and a file whose stamp is not known is read again. Facts are
//! kept by content digest. This module owns the memory of stamps and facts; it knows nothing of queries.

mod collect;

use std::collections::HashMap;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use zero_contracts::find::Skipped;
use zero_contracts::read::EntryKind;
use zero_contracts::source::{Entry, WalkScope};
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, Hasher, SourceView, WorkspacePath};

use crate::facts::FileFacts;
use crate::language::{self, Lang, Language};
use crate::parse::Parsing;
use crate::persist::{Fresh, Key, Persisted};
use crate::pool;
use crate::scope::Scope;

/// Limits on what is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Threads of one call.
    pub threads: usize,
    /// Larger files are not parsed.
    pub parse_bytes: u64,
}

/// What became of a source file.
#[derive(Clone, Debug)]
pub enum Status {
    /// Parsed.
    Parsed(Digest, Arc<FileFacts>),
    /// Left out, with the reason.
    Skipped(String),
}

/// A source file of a tree.
#[derive(Clone, Debug)]
pub struct TreeFile {
    /// Its entry.
    pub entry: Entry,
    /// Its facts, or why there are none.
    pub status: Status,
}

impl TreeFile {
    /// Returns its facts.
    pub fn facts(&self) -> Option<(Digest, &Arc<FileFacts>)> {
        match &self.status {
            Status::Parsed(digest, facts) => Some((*digest, facts)),
            Status::Skipped(_) => None,
        }
    }
}

/// The files of one view at the time of one query.
#[derive(Debug, Default)]
pub struct Tree {
    /// Files of a known language, in order of paths.
    pub sources: Vec<TreeFile>,
    /// Other regular files, in order of paths.
    pub others: Vec<Entry>,
    /// What could not be visited.
    pub skipped: Vec<Skipped>,
}

/// What is remembered between queries.
#[derive(Debug, Default)]
pub struct Memory {
    /// Content of a path under a settled stamp.
    stamps: RwLock<HashMap<WorkspacePath, Vec<(u128, Known)>>>,
    /// Facts of contents.
    facts: RwLock<HashMap<Key, Arc<FileFacts>>>,
    /// The index on disk, if the host gave a place for it.
    persisted: Option<Persisted>,
    /// What is not on disk yet.
    fresh: Mutex<Fresh>,
}

/// So many new contents are written at once; fewer wait for more, or for the end.
const BATCH: usize = 64;

#[derive(Clone, Debug)]
enum Known {
    Facts(Digest, Arc<FileFacts>),
    Skipped(String),
}

/// How many stamps of one path are remembered: the live tree, a staged overlay, a snapshot or two.
const STAMPS: usize = 4;

/// Larger files are never held in memory: a query skips them and says so.
pub const HELD_BYTES: u64 = 256 << 20;

/// Why a file above a limit is skipped.
pub const TOO_LARGE: &str = "too_large";

/// Returns the digest of what a file holds, however large it is.
///
/// # Errors
/// Errors of the view; a retryable `conflict` if it changes meanwhile; `cancelled` and `deadline` from the token.
pub fn digest(view: &dyn SourceView, entry: &Entry, token: &CancelToken) -> Result<Digest, Error> {
    if entry.bytes <= HELD_BYTES {
        return Ok(view.read(&entry.path, token)?.digest);
    }
    let before = view.resolve(&entry.path)?.map(|entry| entry.stamp.value);
    let mut file = view.open(&entry.path)?;
    let (mut hasher, mut buffer) = (Hasher::new(), vec![0; 1 << 18]);
    loop {
        token.check()?;
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => hasher.update(&buffer[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(Error::from_io(&e, format!("reading `{}`", entry.path))),
        };
    }
    if view.resolve(&entry.path)?.map(|entry| entry.stamp.value) != before {
        return Err(crate::answer::changed(&entry.path));
    }
    Ok(hasher.finish())
}

/// Lists the regular files of a scope in order of paths.
///
/// # Errors
/// Errors of the view; `cancelled` and `deadline` from the token.
pub fn entries(view: &dyn SourceView, scope: &Scope, token: &CancelToken) -> Result<(Vec<Entry>, Vec<Skipped>), Error> {
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    for start in &scope.starts {
        let (entries, missed) = walk(view, &start.target, scope.ignored, token, |path| {
            start.target != start.path || scope.contains(path)
        })?;
        found.extend(entries);
        skipped.extend(missed);
    }
    tidy(&mut found);
    Ok((found, skipped))
}

fn tidy(entries: &mut Vec<Entry>) {
    entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    entries.dedup_by(|a, b| a.path == b.path);
}

fn walk(
    view: &dyn SourceView,
    start: &WorkspacePath,
    ignored: bool,
    token: &CancelToken,
    keep: impl Fn(&WorkspacePath) -> bool + Sync,
) -> Result<(Vec<Entry>, Vec<Skipped>), Error> {
    let found = Mutex::new(Vec::new());
    let scope = WalkScope {
        start: start.clone(),
        ignored,
        ..WalkScope::default()
    };
    let skipped = view.walk(&scope, token, &|entry| {
        if entry.kind == EntryKind::File && keep(&entry.path) {
            found.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        }
        if token.is_cancelled() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    token.check()?;
    Ok((found.into_inner().unwrap_or_else(PoisonError::into_inner), skipped))
}

impl Memory {
    /// Makes a memory that keeps facts in a directory, too.
    pub fn persisted(directory: &Path) -> Self {
        let mut memory = Self::default();
        memory.persisted = Some(Persisted::open(directory));
        memory
    }

    /// Walks a view and brings the facts of its sources up to date. The whole tree is walked, because what a use refers
    /// to may lie outside the scope, and besides it whatever the scope names that ignore rules exclude.
    ///
    /// # Errors
    /// Errors of the view; `cancelled` and `deadline` from the token.
    pub fn refresh(
        &self,
        view: &dyn SourceView,
        scope: &Scope,
        limits: Limits,
        token: &CancelToken,
    ) -> Result<Tree, Error> {
        let (mut entries, mut skipped) = walk(view, &WorkspacePath::root(), scope.ignored, token, |_| true)?;
        if !scope.is_whole() {
            for start in &scope.starts {
                let (more, missed) = walk(view, &start.target, scope.ignored, token, |_| true)?;
                entries.extend(more);
                skipped.extend(missed);
            }
        }
        tidy(&mut entries);
        skipped.sort_by(|a, b| a.path.cmp(&b.path));
        skipped.dedup();
        let mut tree = Tree {
            sources: Vec::new(),
            others: Vec::new(),
            skipped,
        };
        let mut missing: Vec<(usize, &'static dyn Language, Lang)> = Vec::new();
        {
            let stamps = self.stamps.read().unwrap_or_else(PoisonError::into_inner);
            for entry in entries {
                let Some((language, lang)) = language::of_path(&entry.path) else {
                    tree.others.push(entry);
                    continue;
                };
                let known = entry.stamp.settled.then(|| stamps.get(&entry.path)).flatten();
                let status = match known.and_then(|k| k.iter().find(|(stamp, _)| *stamp == entry.stamp.value)) {
                    Some((_, Known::Facts(digest, facts))) => Status::Parsed(*digest, Arc::clone(facts)),
                    Some((_, Known::Skipped(why))) => Status::Skipped(why.clone()),
                    None => {
                        missing.push((tree.sources.len(), language, lang));
                        Status::Skipped(String::new())
                    }
                };
                tree.sources.push(TreeFile { entry, status });
            }
        }
        if let Some(persisted) = self.persisted.as_ref().filter(|_| !missing.is_empty()) {
            persisted.reload();
        }
        let results = {
            let sources = &tree.sources;
            pool::map(
                missing.len(),
                limits.threads,
                token,
                || Parsing::new(token),
                |parsing, index| {
                    let (at, language, lang) = missing[index];
                    self.load(view, &sources[at].entry, language, lang, limits, parsing)
                },
            )?
        };
        let mut stamps = self.stamps.write().unwrap_or_else(PoisonError::into_inner);
        let mut gone = Vec::new();
        for ((at, _, lang), loaded) in missing.iter().zip(results) {
            let file = &mut tree.sources[*at];
            let Some((entry, known)) = loaded else {
                gone.push(*at);
                continue;
            };
            // A walk may have seen an older state than the read: what counts is what was read.
            file.entry.stamp = entry.stamp;
            file.entry.bytes = entry.bytes;
            file.status = match &known {
                Known::Facts(digest, facts) => Status::Parsed(*digest, Arc::clone(facts)),
                Known::Skipped(why) => Status::Skipped(why.clone()),
            };
            if file.entry.stamp.settled {
                if let (Known::Facts(digest, _), Some(persisted)) = (&known, &self.persisted) {
                    let (path, stamp, key) = (&file.entry.path, file.entry.stamp.value, (*digest, *lang));
                    if persisted.stamp(path, stamp) != Some(key) {
                        let mut fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
                        fresh.stamps.push((path.clone(), stamp, key));
                    }
                }
                let list = stamps.entry(file.entry.path.clone()).or_default();
                list.retain(|(stamp, _)| *stamp != file.entry.stamp.value);
                list.insert(0, (file.entry.stamp.value, known));
                list.truncate(STAMPS);
            }
        }
        drop(stamps);
        for at in gone.into_iter().rev() {
            tree.sources.remove(at);
        }
        self.save(BATCH, limits.threads, token)?;
        Ok(tree)
    }

    /// Reads one file and returns what is known of it; none if it is gone meanwhile.
    fn load(
        &self,
        view: &dyn SourceView,
        entry: &Entry,
        language: &dyn Language,
        lang: Lang,
        limits: Limits,
        parsing: &mut Parsing<'_>,
    ) -> Result<Option<(Entry, Known)>, Error> {
        if entry.bytes > limits.parse_bytes.min(HELD_BYTES) {
            return Ok(Some((entry.clone(), Known::Skipped(TOO_LARGE.into()))));
        }
        // A stamp that another process saw names the content; its facts may be on disk.
        let stamped = self.persisted.as_ref().filter(|_| entry.stamp.settled);
        if let Some((digest, _)) = stamped
            .and_then(|persisted| persisted.stamp(&entry.path, entry.stamp.value))
            .filter(|(_, known)| *known == lang)
            && let Some(facts) = self.known((digest, lang))
        {
            return Ok(Some((entry.clone(), Known::Facts(digest, facts))));
        }
        let content = match view.read(&entry.path, parsing.token()) {
            Ok(content) => content,
            Err(error) => return unreadable(error, entry),
        };
        let known = match self.facts(language, lang, content.digest, &content.bytes, parsing)? {
            Some(facts) => Known::Facts(content.digest, facts),
            None => Known::Skipped("binary".into()),
        };
        Ok(Some((content.entry, known)))
    }

    /// Returns the facts of one content, computed now if need be; none if it is no UTF-8 text.
    ///
    /// # Errors
    /// `cancelled` and `deadline` from the token.
    pub fn facts(
        &self,
        language: &dyn Language,
        lang: Lang,
        digest: Digest,
        bytes: &[u8],
        parsing: &mut Parsing<'_>,
    ) -> Result<Option<Arc<FileFacts>>, Error> {
        if let Some(facts) = self.known((digest, lang)) {
            return Ok(Some(facts));
        }
        let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')) else {
            return Ok(None);
        };
        let facts = Arc::new(language.facts(lang, text, parsing)?);
        if self.persisted.is_some() {
            let mut fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
            fresh.facts.push(((digest, lang), Arc::clone(&facts)));
        }
        Ok(Some(self.remember((digest, lang), facts)))
    }

    /// Returns the facts of a content from memory, or from disk.
    fn known(&self, key: Key) -> Option<Arc<FileFacts>> {
        let facts = self.facts.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = facts.get(&key) {
            return Some(Arc::clone(known));
        }
        drop(facts);
        let facts = self.persisted.as_ref()?.facts(key)?;
        Some(self.remember(key, Arc::new(facts)))
    }

    fn remember(&self, key: Key, facts: Arc<FileFacts>) -> Arc<FileFacts> {
        let mut all = self.facts.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(key).or_insert(facts))
    }

    /// Writes what is new to the index on disk, if it is as much as `least` contents.
    ///
    /// # Errors
    /// `cancelled` and `deadline` from the token. A disk that takes nothing is no error: the index is a help, not a record.
    pub fn save(&self, least: usize, threads: usize, token: &CancelToken) -> Result<(), Error> {
        let Some(persisted) = &self.persisted else {
            return Ok(());
        };
        let fresh = {
            let mut fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
            if fresh.facts.len().max(fresh.stamps.len()) < least.max(1) {
                return Ok(());
            }
            std::mem::take(&mut *fresh)
        };
        match persisted.save(&fresh, threads, token) {
            Err(error) if matches!(error.kind, ErrorKind::Cancelled | ErrorKind::Deadline) => {
                // What was learnt is not lost: the next call writes it.
                let mut later = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
                later.facts.extend(fresh.facts);
                later.stamps.extend(fresh.stamps);
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Returns how many contents are known.
    pub fn len(&self) -> usize {
        self.facts.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the size of the index on disk in bytes.
    pub fn persisted_bytes(&self) -> u64 {
        self.persisted.as_ref().map_or(0, Persisted::bytes)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // The last few contents that were learnt; without them the next process parses them again.
        let _ = self.save(1, 1, &CancelToken::new());
    }
}

/// Turns a failed read into a reason, or passes on what ends the query.
fn unreadable(error: Error, entry: &Entry) -> Result<Option<(Entry, Known)>, Error> {
    let mut entry = entry.clone();
    entry.stamp.settled = false;
    match error.kind {
        ErrorKind::Cancelled | ErrorKind::Deadline => Err(error),
        ErrorKind::NotFound => Ok(None),
        ErrorKind::Conflict => Ok(Some((entry, Known::Skipped("changed".into())))),
        _ => Ok(Some((entry, Known::Skipped(format!("unreadable: {}", error.detail))))),
    }
}
