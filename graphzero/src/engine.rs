//! The engine: routes each mode, retries when files change under a query, keeps worlds.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use zero_contracts::find::{FindMode, FindRequest, FindResult};
use zero_contracts::read::OutlineItem;
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, SourceView, StructureEngine, TextRange, WorkspacePath};

use crate::facts::FileFacts;
use crate::language::{self, Lang, Language};
use crate::parse::Parsing;
use crate::persist::Keep;
use crate::scope::Scope;
use crate::tree::{Limits, Memory};
use crate::world::{self, World};
use crate::{outline, pool, structure, text};

/// How an engine works.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GraphConfig {
    /// Threads of one call; they end with it. Default: as many as there are processors, at most 8.
    pub threads: usize,
    /// Source files with more bytes are not parsed (`too_large`). Default 8 MiB.
    pub parse_bytes: u64,
    /// Directory of the persisted index; none: in memory alone. It must lie outside every workspace, and belongs to this engine
    /// alone. Several processes may share it.
    pub index: Option<PathBuf>,
}

impl Default for GraphConfig {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from).min(8),
            parse_bytes: 8 << 20,
            index: None,
        }
    }
}

impl GraphConfig {
    /// Sets the threads of one call.
    #[must_use]
    pub const fn threads(mut self, threads: usize) -> Self {
        self.threads = if threads == 0 { 1 } else { threads };
        self
    }

    /// Sets the size above which source files are not parsed.
    #[must_use]
    pub const fn parse_bytes(mut self, bytes: u64) -> Self {
        self.parse_bytes = bytes;
        self
    }

    /// Keeps facts in a directory, too.
    #[must_use]
    pub fn index(mut self, directory: impl Into<PathBuf>) -> Self {
        self.index = Some(directory.into());
        self
    }
}

/// How many worlds are kept: the live tree, a cell's staged tree, one more of each kind.
const WORLDS: usize = 4;

/// How often a query starts again when files change under it, before the caller is told.
const TRIES: usize = 3;

/// The structure engine. One serves any number of views and threads; it holds memory, but no thread and no open file.
#[derive(Default)]
pub struct GraphZero {
    config: GraphConfig,
    memory: Memory,
    worlds: Mutex<Vec<Arc<World>>>,
}

impl std::fmt::Debug for GraphZero {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphZero")
            .field("config", &self.config)
            .field("contents", &self.memory.len())
            .finish()
    }
}

impl GraphZero {
    /// Makes an engine with the default configuration and an empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an engine with an empty index.
    ///
    /// # Errors
    /// `invalid_input` for a limit of zero bytes.
    pub fn open(config: GraphConfig) -> Result<Self, Error> {
        if config.parse_bytes == 0 {
            return Err(Error::invalid("`parse_bytes` must be at least 1").with_path("parse_bytes"));
        }
        let memory = config.index.as_deref().map(Memory::persisted).unwrap_or_default();
        Ok(Self {
            config,
            memory,
            ..Self::default()
        })
    }

    /// Returns how many contents the index knows.
    pub fn indexed(&self) -> usize {
        self.memory.len()
    }

    /// Returns the size of the persisted index in bytes.
    pub fn persisted_bytes(&self) -> u64 {
        self.memory.persisted_bytes()
    }

    /// Drops what is known of contents that `keep` does not want, also on disk; returns the bytes freed there.
    ///
    /// # Errors
    /// Errors of the file system; `cancelled` and `deadline` from the token.
    pub fn collect(&self, keep: &dyn Fn(&Digest) -> bool, token: &CancelToken) -> Result<u64, Error> {
        self.worlds.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let keep = Keep {
            content: keep,
            path: &|_| true,
        };
        self.memory.collect(&keep, token)
    }

    fn limits(&self) -> Limits {
        Limits {
            threads: self.config.threads,
            parse_bytes: self.config.parse_bytes,
        }
    }

    /// Brings the index up to date with a view without asking anything.
    ///
    /// # Errors
    /// Errors of the view; `cancelled` and `deadline` from the token.
    pub fn refresh(&self, view: &dyn SourceView, token: &CancelToken) -> Result<(), Error> {
        let scope = Scope::read(&Default::default(), view, token)?;
        self.memory.refresh(view, &scope, self.limits(), token).map(drop)
    }

    /// Returns the world of a tree, from memory if it is known.
    fn world(&self, tree: &crate::tree::Tree) -> Arc<World> {
        let fingerprint = world::fingerprint(tree);
        let mut worlds = self.worlds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = worlds.iter().position(|world| world.fingerprint == fingerprint) {
            let world = worlds.remove(at);
            worlds.insert(0, Arc::clone(&world));
            return world;
        }
        drop(worlds);
        let world = Arc::new(World::new(tree));
        worlds = self.worlds.lock().unwrap_or_else(PoisonError::into_inner);
        worlds.insert(0, Arc::clone(&world));
        worlds.truncate(WORLDS);
        world
    }

    fn find_once(
        &self,
        view: &dyn SourceView,
        request: &FindRequest,
        token: &CancelToken,
    ) -> Result<FindResult, Error> {
        token.check()?;
        let scope = Scope::read(&request.options, view, token)?;
        match request.options.mode {
            FindMode::Text | FindMode::Word | FindMode::Regex => {
                text::find(view, request, &scope, self.config.threads, token)
            }
            FindMode::Paths => text::find_paths(view, request, &scope, token),
            _ => {
                let tree = self.memory.refresh(view, &scope, self.limits(), token)?;
                let world = self.world(&tree);
                let query = structure::Context {
                    view,
                    request,
                    scope: &scope,
                    tree: &tree,
                    world: &world,
                    threads: self.config.threads,
                    token,
                };
                structure::find(&query)
            }
        }
    }

    /// Returns the facts of one content; none for an unknown language or what is no text.
    fn facts_of(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        token: &CancelToken,
    ) -> Result<Option<Arc<FileFacts>>, Error> {
        let Some((language, lang)) = parsed_language(path) else {
            return Ok(None);
        };
        let digest = Digest::of(bytes);
        pool::on_large_stack(token, || {
            self.memory
                .facts(language, lang, digest, bytes, &mut Parsing::new(token))
        })
    }
}

fn parsed_language(path: &WorkspacePath) -> Option<(&'static dyn Language, Lang)> {
    language::of_path(path).filter(|(_, lang)| *lang != Lang::Manifest)
}

impl StructureEngine for GraphZero {
    fn find(&self, view: &dyn SourceView, request: &FindRequest, token: &CancelToken) -> Result<FindResult, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.find_once(view, request, token) {
                // A file changed between two looks at it: look again. A stale cursor is not mended by another try.
                Err(error)
                    if error.kind == ErrorKind::Conflict
                        && error.path.as_deref() != Some("options.next")
                        && tries < TRIES => {}
                result => return result,
            }
        }
    }

    fn outline(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        token: &CancelToken,
    ) -> Result<Option<Vec<OutlineItem>>, Error> {
        Ok(self
            .facts_of(path, bytes, token)?
            .map(|facts| outline::outline(&facts, bytes)))
    }

    fn symbol(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        symbol: &str,
        token: &CancelToken,
    ) -> Result<Vec<TextRange>, Error> {
        let facts = self.facts_of(path, bytes, token)?.ok_or_else(|| {
            Error::new(
                ErrorKind::Unsupported,
                format!("no grammar of this build reads `{path}`: select by lines or bytes"),
            )
            .with_path(path)
        })?;
        Ok(outline::symbol(&facts, bytes, symbol))
    }

    fn syntax_errors(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        token: &CancelToken,
    ) -> Result<Option<Vec<TextRange>>, Error> {
        let facts = self.facts_of(path, bytes, token)?;
        Ok(facts.map(|facts| {
            facts
                .errors
                .iter()
                .map(|&span| crate::answer::range(bytes, span))
                .collect()
        }))
    }

    fn collect_absent(&self, view: &dyn SourceView, token: &CancelToken) -> Result<u64, Error> {
        self.worlds.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.memory.collect_absent(view, self.limits(), token)
    }
}
