//! The files of a view as one query sees them, and what is remembered of them between queries.
//!
//! Freshness needs no watcher: every query walks its scope, and a file whose stamp is not known is read again. Facts are
//! kept by content digest. This module owns the memory of stamps and facts; it knows nothing of queries.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use zero_contracts::find::Skipped;
use zero_contracts::read::EntryKind;
use zero_contracts::source::{Entry, WalkScope};
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, SourceView, WorkspacePath};

use crate::facts::FileFacts;
use crate::language::{self, Lang, Language};
use crate::parse::Parsing;
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
    facts: RwLock<HashMap<(Digest, Lang), Arc<FileFacts>>>,
}

#[derive(Clone, Debug)]
enum Known {
    Facts(Digest, Arc<FileFacts>),
    Skipped(String),
}

/// How many stamps of one path are remembered: the live tree, a staged overlay, a snapshot or two.
const STAMPS: usize = 4;

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
        for ((at, _, _), loaded) in missing.iter().zip(results) {
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
        if entry.bytes > limits.parse_bytes {
            return Ok(Some((entry.clone(), Known::Skipped("too_large".into()))));
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
        let known = self
            .facts
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&(digest, lang))
            .cloned();
        if let Some(facts) = known {
            return Ok(Some(facts));
        }
        let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')) else {
            return Ok(None);
        };
        let facts = Arc::new(language.facts(lang, text, parsing)?);
        let mut all = self.facts.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(Arc::clone(all.entry((digest, lang)).or_insert(facts))))
    }

    /// Returns how many contents are known.
    pub fn len(&self) -> usize {
        self.facts.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Forgets the facts of contents that `keep` does not want.
    pub fn collect(&self, keep: &dyn Fn(&Digest) -> bool) {
        self.facts
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(digest, _), _| keep(digest));
        let mut stamps = self.stamps.write().unwrap_or_else(PoisonError::into_inner);
        for list in stamps.values_mut() {
            list.retain(|(_, known)| match known {
                Known::Facts(digest, _) => keep(digest),
                Known::Skipped(_) => true,
            });
        }
        stamps.retain(|_, list| !list.is_empty());
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
