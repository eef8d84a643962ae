//! The facts of one tree joined over all languages: names to definitions, uses to targets, qualified names.
//!
//! A world is immutable and a pure function of paths and contents, so worlds are kept by the fingerprint of those and
//! shared by queries. Its resolvers are made when the first query needs one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use zero_contracts::find::DefinitionSite;
use zero_contracts::{Digest, WorkspacePath};

use crate::facts::{Def, DefId, FileFacts, Kind, UseId};
use crate::language::{Lang, Language, languages};
use crate::program::{ImportEdge, ProgramFile, Resolver, Target};
use crate::tree::Tree;

/// Index of a file in a world, in order of paths.
pub type WorldFileId = u32;

/// A definition of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol {
    /// Its file.
    pub file: WorldFileId,
    /// The definition in the file's facts.
    pub def: DefId,
}

/// One file of a world.
pub struct WorldFile {
    /// Where it lies.
    pub path: WorkspacePath,
    /// Its content.
    pub digest: Digest,
    /// What is known of it.
    pub facts: Arc<FileFacts>,
    family: usize,
    program: u32,
}

struct Family {
    language: &'static dyn Language,
    files: Arc<[ProgramFile]>,
    worlds: Vec<WorldFileId>,
    resolver: OnceLock<Box<dyn Resolver>>,
}

impl Family {
    fn resolver(&self) -> &dyn Resolver {
        &**self
            .resolver
            .get_or_init(|| self.language.resolver(Arc::clone(&self.files)))
    }
}

/// What uses were found to refer to.
type Resolved = HashMap<(WorldFileId, UseId), Arc<[Target]>>;

/// All parsed files of a tree.
pub struct World {
    /// Names paths and contents.
    pub fingerprint: Digest,
    /// The files in order of paths.
    pub files: Vec<WorldFile>,
    families: Vec<Family>,
    resolved: Mutex<Resolved>,
}

impl World {
    /// Joins the parsed files of a tree.
    pub fn new(tree: &Tree) -> Self {
        let mut files = Vec::with_capacity(tree.sources.len());
        let mut members: Vec<(Vec<ProgramFile>, Vec<WorldFileId>)> =
            languages().iter().map(|_| Default::default()).collect();
        for source in &tree.sources {
            let Some((digest, facts)) = source.facts() else {
                continue;
            };
            let path = &source.entry.path;
            let Some(family) = languages().iter().position(|l| l.claims(path).is_some()) else {
                continue;
            };
            let (programs, worlds) = &mut members[family];
            worlds.push(files.len() as WorldFileId);
            files.push(WorldFile {
                path: path.clone(),
                digest,
                facts: Arc::clone(facts),
                family,
                program: programs.len() as u32,
            });
            programs.push(ProgramFile {
                path: path.clone(),
                facts: Arc::clone(facts),
            });
        }
        let families = languages()
            .iter()
            .zip(members)
            .map(|(&language, (programs, worlds))| Family {
                language,
                files: programs.into(),
                worlds,
                resolver: OnceLock::new(),
            })
            .collect();
        Self {
            fingerprint: fingerprint(tree),
            files,
            families,
            resolved: Mutex::default(),
        }
    }

    /// Returns a file.
    pub fn file(&self, id: WorldFileId) -> &WorldFile {
        &self.files[id as usize]
    }

    /// Returns a definition.
    pub fn def(&self, symbol: Symbol) -> &Def {
        &self.file(symbol.file).facts.defs[symbol.def as usize]
    }

    /// Returns the definition's name.
    pub fn name(&self, symbol: Symbol) -> &str {
        self.file(symbol.file).facts.def_name(symbol.def)
    }

    /// Returns what a use may refer to, best first, with the definitions' files as files of the world.
    pub fn resolve(&self, file: WorldFileId, use_id: UseId) -> Arc<[Target]> {
        if let Some(known) = self
            .resolved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&(file, use_id))
        {
            return Arc::clone(known);
        }
        let of = self.file(file);
        let family = &self.families[of.family];
        let mut targets = family.resolver().resolve(of.program, use_id);
        for target in &mut targets {
            target.file = family.worlds[target.file as usize];
        }
        let targets: Arc<[Target]> = targets.into();
        let mut resolved = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(resolved.entry((file, use_id)).or_insert(targets))
    }

    /// Returns what a file imports, with files of the world.
    pub fn imports(&self, file: WorldFileId) -> Vec<ImportEdge> {
        let of = self.file(file);
        let family = &self.families[of.family];
        let mut edges = family.resolver().imports(of.program);
        for edge in &mut edges {
            for file in &mut edge.files {
                *file = family.worlds[*file as usize];
            }
            for target in &mut edge.targets {
                target.file = family.worlds[target.file as usize];
            }
        }
        edges
    }

    /// Returns a name and every other name under which files mention it.
    pub fn spellings(&self, name: &str) -> Vec<String> {
        let mut all = vec![name.to_owned()];
        for family in &self.families {
            if !family.files.is_empty() {
                all.extend(family.resolver().aliases(name));
            }
        }
        all.sort();
        all.dedup();
        all
    }

    /// Tells whether a definition is a copy, for another configuration, of one that the default configuration builds.
    pub fn is_copy(&self, symbol: Symbol) -> bool {
        let of = self.file(symbol.file);
        self.families[of.family].resolver().is_copy(of.program, symbol.def)
    }

    /// Returns the parts of a definition's qualified name, outermost first.
    pub fn parts(&self, symbol: Symbol) -> Vec<String> {
        let of = self.file(symbol.file);
        let mut parts = self.families[of.family].resolver().module_path(of.program);
        parts.extend(of.facts.chain(symbol.def).into_iter().map(str::to_owned));
        parts
    }

    /// Returns the module path of a file.
    pub fn module(&self, file: WorldFileId) -> Vec<String> {
        let of = self.file(file);
        self.families[of.family].resolver().module_path(of.program)
    }

    /// Returns a definition's qualified name, written as its language does.
    pub fn qualified(&self, symbol: Symbol) -> String {
        self.parts(symbol).join(separator(self.file(symbol.file).facts.lang))
    }

    /// Returns where a definition's name stands.
    pub fn site(&self, symbol: Symbol) -> DefinitionSite {
        let def = self.def(symbol);
        DefinitionSite {
            path: self.file(symbol.file).path.to_string(),
            line: u64::from(def.line),
            column: u64::from(def.column),
        }
    }

    /// Returns the definitions of a name or qualified tail, in order of path and place.
    pub fn definitions(&self, query: &Query) -> Vec<Symbol> {
        let mut found = Vec::new();
        for (id, file) in self.files.iter().enumerate() {
            let Some(name) = file.facts.name_id(query.name()) else {
                continue;
            };
            for (def, entry) in file.facts.defs.iter().enumerate() {
                let symbol = Symbol {
                    file: id as WorldFileId,
                    def: def as DefId,
                };
                if entry.name == name
                    && entry.kind != Kind::Impl
                    && (query.parts.len() == 1 || query.matches(&self.parts(symbol)))
                {
                    found.push(symbol);
                }
            }
        }
        self.order(&mut found);
        found
    }

    /// Sorts symbols by path and place.
    pub fn order(&self, symbols: &mut Vec<Symbol>) {
        symbols.sort_by_key(|&symbol| (symbol.file, self.def(symbol).at.start, symbol.def));
        symbols.dedup();
    }
}

/// Fingerprints the sources of a tree by path and content.
pub fn fingerprint(tree: &Tree) -> Digest {
    let mut bytes = Vec::with_capacity(tree.sources.len() * 96);
    for source in &tree.sources {
        bytes.extend_from_slice(source.entry.path.as_bytes());
        bytes.push(0);
        match source.facts() {
            Some((digest, _)) => bytes.extend_from_slice(digest.as_bytes()),
            None => bytes.push(1),
        }
    }
    Digest::of(&bytes)
}

/// Returns what stands between the parts of a qualified name.
pub const fn separator(lang: Lang) -> &'static str {
    match lang {
        Lang::Rust | Lang::Cpp => "::",
        _ => ".",
    }
}

/// A name or qualified tail that was asked for.
#[derive(Clone, Debug)]
pub struct Query {
    parts: Vec<String>,
}

impl Query {
    /// Reads a query; none if it holds no name.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim().trim_end_matches("()").trim_end_matches('!');
        let text = text.replace("::", ".").replace(['#', '/'], ".");
        let mut parts: Vec<String> = text
            .split('.')
            .map(|part| part.trim().trim_start_matches("r#"))
            .filter(|p| !p.is_empty())
            .map(str::to_owned)
            .collect();
        if parts.len() > 1 && parts[0] == "crate" {
            parts.remove(0);
        }
        (!parts.is_empty()).then_some(Self { parts })
    }

    /// Returns the last part.
    pub fn name(&self) -> &str {
        self.parts.last().map_or("", String::as_str)
    }

    /// Tells whether a qualified name is a tail of this.
    pub fn is_longer_than(&self, parts: &[String]) -> bool {
        self.parts.ends_with(parts)
    }

    /// Tells whether this is a tail of a qualified name.
    pub fn matches(&self, parts: &[String]) -> bool {
        parts.ends_with(&self.parts)
    }
}
