//! The index on disk: facts of contents that outlive the process.
//!
//! One file holds one *generation*: everything that was learnt since the one before ([`generation`] has its form). A
//! generation is written beside its final name and moved there when it is complete, so a reader sees it whole or not at all;
//! what is torn or damaged all the same fails its checksum and counts as not there, and so does what another extractor
//! wrote. Nothing here is needed: whatever is missing is parsed again. This module owns the directory that the host gives, which
//! lies outside the workspace, and never touches another.

mod generation;
mod map;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use generation::{Contents, Generation, KnownStamp};
use zero_contracts::{CancelToken, Digest, Error, WorkspacePath};

use crate::facts::FileFacts;
use crate::language::{Lang, languages};
use crate::pool;

/// More generations than this are merged into one.
const GENERATIONS: usize = 8;

/// What a killed writer left behind is removed when it is this old.
const ABANDONED: Duration = Duration::from_secs(600);

const EXTENSION: &str = "facts";

/// Facts of one content in one language.
pub type Key = (Digest, Lang);

/// The index on disk.
#[derive(Debug)]
pub struct Persisted {
    directory: PathBuf,
    version: [u8; 16],
    state: RwLock<State>,
    /// Only one thread writes.
    writing: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// In order of their numbers.
    generations: Vec<(PathBuf, Arc<Generation>)>,
    /// Files that are damaged or of another version.
    dead: HashSet<PathBuf>,
    facts: HashMap<Key, (Arc<Generation>, u64)>,
    stamps: HashMap<WorkspacePath, (u128, Key)>,
}

/// What is to be written.
#[derive(Debug, Default)]
pub struct Fresh {
    /// Facts that no generation holds.
    pub facts: Vec<(Key, Arc<FileFacts>)>,
    /// Contents of paths under settled stamps.
    pub stamps: Vec<(WorkspacePath, u128, Key)>,
}

/// What a collection keeps.
pub struct Keep<'k> {
    /// Facts of these contents.
    pub content: &'k dyn Fn(&Digest) -> bool,
    /// What these paths were known to hold.
    pub path: &'k dyn Fn(&WorkspacePath) -> bool,
}

impl Keep<'_> {
    fn stamp(&self, path: &WorkspacePath, key: &Key) -> bool {
        (self.content)(&key.0) && (self.path)(path)
    }
}

impl Persisted {
    /// Opens the index in a directory, which is made when there is something to write.
    pub fn open(directory: &Path) -> Self {
        let index = Self {
            directory: directory.to_owned(),
            version: version(),
            state: RwLock::default(),
            writing: Mutex::new(()),
        };
        index.reload();
        index
    }

    /// Looks for generations that others wrote or removed.
    pub fn reload(&self) {
        let files = self.files(EXTENSION);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<&PathBuf> = state.generations.iter().map(|(path, _)| path).collect();
        if known
            .iter()
            .copied()
            .eq(files.iter().filter(|file| !state.dead.contains(*file)))
        {
            return;
        }
        let mut next = State::default();
        for path in files {
            let before = state.generations.iter().find(|(known, _)| *known == path);
            let generation = match before {
                Some((_, generation)) => Some(Arc::clone(generation)),
                None if state.dead.contains(&path) => None,
                None => Generation::open(&path, self.version).map(Arc::new),
            };
            match generation {
                Some(generation) => next.generations.push((path, generation)),
                None => {
                    next.dead.insert(path);
                }
            }
        }
        for (_, generation) in &next.generations {
            for &(key, at) in &generation.contents.facts {
                next.facts.insert(key, (Arc::clone(generation), at));
            }
            for known in &generation.contents.stamps {
                next.stamps.insert(known.path.clone(), (known.stamp, known.key));
            }
        }
        *state = next;
    }

    /// Returns the content that a path had under a settled stamp.
    pub fn stamp(&self, path: &WorkspacePath, stamp: u128) -> Option<Key> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state
            .stamps
            .get(path)
            .filter(|(known, _)| *known == stamp)
            .map(|(_, key)| *key)
    }

    /// Returns the facts of a content, if they are there and undamaged.
    pub fn facts(&self, key: Key) -> Option<FileFacts> {
        let (generation, at) = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            state
                .facts
                .get(&key)
                .map(|(generation, at)| (Arc::clone(generation), *at))?
        };
        let facts = generation.facts(at);
        if facts.is_none() {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            state.facts.remove(&key);
        }
        facts
    }

    /// Returns how many bytes the generations have.
    pub fn bytes(&self) -> u64 {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.generations.iter().map(|(_, generation)| generation.bytes()).sum()
    }

    /// Writes a generation with what is new; merges all into one when there are many.
    ///
    /// # Errors
    /// `io` and the like; `cancelled` and `deadline` from the token. Whatever happens, what was there stays.
    pub fn save(&self, fresh: &Fresh, threads: usize, token: &CancelToken) -> Result<(), Error> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.reload();
        let many = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            state.generations.len() >= GENERATIONS || !state.dead.is_empty()
        };
        if many {
            let all = Keep {
                content: &|_| true,
                path: &|_| true,
            };
            self.write(fresh, Some(&all), threads, token)
        } else {
            self.write(fresh, None, threads, token)
        }
    }

    /// Drops what `keep` does not want; returns the bytes freed.
    ///
    /// # Errors
    /// As for [`save`](Self::save).
    pub fn collect(&self, keep: &Keep<'_>, token: &CancelToken) -> Result<u64, Error> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.reload();
        let goes = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            !state.dead.is_empty()
                || state.facts.keys().any(|(digest, _)| !(keep.content)(digest))
                || state.stamps.iter().any(|(path, (_, key))| !keep.stamp(path, key))
        };
        if !goes {
            return Ok(0);
        }
        let before = self.bytes_in_place();
        self.write(&Fresh::default(), Some(keep), 1, token)?;
        Ok(before.saturating_sub(self.bytes_in_place()))
    }

    /// Returns how many bytes the files have, also those that are of no use any more.
    fn bytes_in_place(&self) -> u64 {
        let files = self.files(EXTENSION);
        files
            .iter()
            .filter_map(|file| std::fs::metadata(file).ok())
            .map(|meta| meta.len())
            .sum()
    }

    /// Writes one generation: what is new, and with `merge` whatever it accepts of what is there, which then goes.
    fn write(&self, fresh: &Fresh, merge: Option<&Keep<'_>>, threads: usize, token: &CancelToken) -> Result<(), Error> {
        let failed = |what: &'static str| {
            move |error: std::io::Error| Error::from_io(&error, format!("{what} the persisted index"))
        };
        let new: Vec<Vec<u8>> = pool::map(
            fresh.facts.len(),
            threads,
            token,
            || (),
            |(), at| generation::encode(&fresh.facts[at].1),
        )?;
        std::fs::create_dir_all(&self.directory).map_err(failed("making the directory of"))?;
        let mut writer = generation::Writer::create(&self.directory, self.version).map_err(failed("writing"))?;
        let mut contents = Contents::default();
        let mut replaced: Vec<PathBuf> = Vec::new();
        let mut stamps: HashMap<WorkspacePath, (u128, Key)> = HashMap::new();
        if let Some(keep) = merge {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            let mut old: Vec<_> = state
                .facts
                .iter()
                .filter(|((digest, _), _)| (keep.content)(digest))
                .collect();
            old.sort_unstable_by_key(|(key, _)| **key);
            for (key, (generation, at)) in old {
                token.check()?;
                if let Some(frame) = generation.frame(*at) {
                    contents
                        .facts
                        .push((*key, writer.frame(frame).map_err(failed("writing"))?));
                }
            }
            let wanted = state.stamps.iter().filter(|(path, (_, key))| keep.stamp(path, key));
            stamps.extend(wanted.map(|(path, known)| (path.clone(), *known)));
            replaced.extend(state.generations.iter().map(|(path, _)| path.clone()));
            replaced.extend(state.dead.iter().cloned());
        }
        let written: HashSet<Key> = contents.facts.iter().map(|(key, _)| *key).collect();
        for ((key, _), frame) in fresh.facts.iter().zip(&new) {
            token.check()?;
            if !written.contains(key) {
                contents
                    .facts
                    .push((*key, writer.frame(frame).map_err(failed("writing"))?));
            }
        }
        stamps.extend(
            fresh
                .stamps
                .iter()
                .map(|(path, stamp, key)| (path.clone(), (*stamp, *key))),
        );
        contents.stamps = stamps
            .into_iter()
            .map(|(path, (stamp, key))| KnownStamp { path, stamp, key })
            .collect();
        contents.stamps.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let complete = writer.finish(&contents).map_err(failed("writing"))?;
        self.publish(&complete).map_err(failed("publishing"))?;
        for path in replaced {
            // Somebody else may have removed it; who has it mapped keeps it.
            let _ = std::fs::remove_file(path);
        }
        self.sweep();
        self.reload();
        Ok(())
    }

    /// Gives a complete generation the next number that is free.
    fn publish(&self, complete: &Path) -> std::io::Result<()> {
        let last = self.files(EXTENSION).pop();
        let last = last.and_then(|path| u64::from_str_radix(path.file_stem()?.to_str()?, 16).ok());
        let mut number = last.map_or(0, |last| last + 1);
        loop {
            let path = self.directory.join(format!("{number:016x}.{EXTENSION}"));
            // Unlike a rename, a link never replaces what another process has put there meanwhile.
            match std::fs::hard_link(complete, path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                result => {
                    let _ = std::fs::remove_file(complete);
                    return result;
                }
            }
        }
    }

    /// Removes what killed writers left.
    fn sweep(&self) {
        for path in self.files(generation::UNFINISHED) {
            let modified = std::fs::metadata(&path).and_then(|meta| meta.modified());
            let age = modified.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            if age.is_some_and(|age| age > ABANDONED) {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// Lists the files of the directory with an extension, in order.
    fn files(&self, extension: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|found| found == extension))
            .collect();
        files.sort();
        files
    }
}

/// Names what makes facts: the sources of this crate, the languages of this build, and their grammars.
fn version() -> [u8; 16] {
    let mut text = env!("GRAPHZERO_SOURCES").to_owned();
    for language in languages() {
        for &lang in Lang::ALL {
            let Some(grammar) = language.grammar(lang) else {
                continue;
            };
            text.push_str(&format!("\n{} {}", lang.as_str(), grammar.abi_version()));
            for id in 0..grammar.node_kind_count() {
                text.push(' ');
                text.push_str(grammar.node_kind_for_id(id as u16).unwrap_or_default());
            }
        }
    }
    let mut version = [0; 16];
    version.copy_from_slice(&Digest::of(text.as_bytes()).as_bytes()[..16]);
    version
}

#[cfg(test)]
mod tests;
