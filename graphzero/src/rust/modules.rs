//! Crates and the tree of modules: which file is which module, by Cargo's conventions, manifests and `mod` declarations.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::code::{ItemKind, RustCode, ScopeId, ScopeKind};
use crate::code::Code;
use crate::facts::{DefId, FileFacts, Kind, NONE};

/// One file as the module tree sees it.
pub struct Source<'f> {
    /// Its path as text.
    pub path: String,
    /// Its facts.
    pub facts: &'f FileFacts,
}

/// Where a file stands among the modules.
#[derive(Clone, Debug, Default)]
pub struct Home {
    /// The file of the crate's root.
    pub root: u32,
    /// The module that declares it, or none for a root.
    pub parent: Option<(u32, ScopeId)>,
    /// Names of the modules from the root down to it.
    pub names: Vec<String>,
}

/// The modules of a program.
#[derive(Clone, Debug, Default)]
pub struct Modules {
    /// Where each file stands.
    pub homes: Vec<Home>,
    /// The files that `mod name;` declarations lead to.
    pub files: HashMap<(u32, DefId), u32>,
    /// The `mod` declarations that lead to files.
    pub declared: HashMap<u32, Vec<(u32, DefId)>>,
    /// The features that the package of each file turns on by default.
    features: HashMap<u32, Arc<HashSet<String>>>,
    /// The directory of each package, with these features.
    packages: Vec<(String, Arc<HashSet<String>>)>,
    /// Library crates by the name under which others use them.
    pub crates: HashMap<String, Vec<u32>>,
}

impl Modules {
    /// Returns the features that a file's package turns on by default, if its manifest is known.
    pub fn features_of(&self, file: u32) -> Option<&HashSet<String>> {
        self.features.get(&file).map(|features| &**features)
    }

    /// Builds the tree.
    pub fn new(sources: &[Source<'_>]) -> Self {
        let by_path: HashMap<&str, u32> = sources
            .iter()
            .enumerate()
            .map(|(i, s)| (s.path.as_str(), i as u32))
            .collect();
        let mut modules = Self {
            homes: vec![Home::default(); sources.len()],
            ..Self::default()
        };
        let mut seen = HashSet::new();
        let mut roots: Vec<u32> = Vec::new();
        for source in sources {
            if let Code::Manifest(text) = &source.facts.code {
                roots.extend(modules.package(&source.path, text, &by_path));
            }
        }
        for (id, source) in sources.iter().enumerate() {
            // The innermost package has the longest directory.
            let own = modules
                .packages
                .iter()
                .filter(|(directory, _)| source.path.starts_with(directory.as_str()));
            if let Some((_, features)) = own.max_by_key(|(directory, _)| directory.len()) {
                modules.features.insert(id as u32, Arc::clone(features));
            }
        }
        // Roots by convention, for trees without manifests; then whatever nothing has declared.
        let named = |name: &str| {
            let mut found: Vec<u32> = (0..sources.len() as u32)
                .filter(|&id| {
                    let path = &sources[id as usize].path;
                    path == name || path.ends_with(&format!("/{name}"))
                })
                .collect();
            found.sort_by_key(|&id| (sources[id as usize].path.matches('/').count(), id));
            found
        };
        let mut later: Vec<u32> = Vec::new();
        for name in ["lib.rs", "main.rs", "mod.rs"] {
            later.extend(named(name));
        }
        later.extend(0..sources.len() as u32);
        for id in roots.into_iter().chain(later) {
            if matches!(sources[id as usize].facts.code, Code::Rust(_)) && seen.insert(id) {
                modules.homes[id as usize] = Home {
                    root: id,
                    parent: None,
                    names: Vec::new(),
                };
                modules.declare(id, id, sources, &by_path, &mut seen);
            }
        }
        modules
    }

    /// Reads a manifest: notes the library's name and returns the roots of the package's crates, the library first.
    fn package(&mut self, path: &str, text: &str, by_path: &HashMap<&str, u32>) -> Vec<u32> {
        let Ok(manifest) = text.parse::<toml::Table>() else {
            return Vec::new();
        };
        let directory = path.strip_suffix("Cargo.toml").unwrap_or_default();
        self.packages.push((
            directory.to_owned(),
            Arc::new(super::conditions::default_features(&manifest)),
        ));
        let Some(package) = manifest.get("package").and_then(|p| p.as_table()) else {
            return Vec::new();
        };
        let text_of = |table: &toml::Table, key: &str| table.get(key).and_then(|v| v.as_str()).map(str::to_owned);
        let file = |relative: &str| by_path.get(join(directory, relative).as_str()).copied();
        let name = text_of(package, "name").unwrap_or_default();
        let lib = manifest.get("lib").and_then(|l| l.as_table());
        let lib_path = lib
            .and_then(|l| text_of(l, "path"))
            .unwrap_or_else(|| "src/lib.rs".into());
        let mut roots = BTreeSet::new();
        let mut first = Vec::new();
        if let Some(root) = file(&lib_path) {
            let name = lib.and_then(|l| text_of(l, "name")).unwrap_or(name).replace('-', "_");
            self.crates.entry(name).or_default().push(root);
            first.push(root);
        }
        roots.extend(file("src/main.rs"));
        roots.extend(file("build.rs"));
        for key in ["bin", "test", "bench", "example"] {
            for target in manifest.get(key).and_then(|t| t.as_array()).into_iter().flatten() {
                let path = target.as_table().and_then(|table| text_of(table, "path"));
                roots.extend(path.and_then(|path| file(&path)));
            }
        }
        for place in ["src/bin/", "tests/", "benches/", "examples/"] {
            let start = format!("{directory}{place}");
            for (path, &id) in by_path {
                let Some(rest) = path.strip_prefix(&start) else {
                    continue;
                };
                let direct = !rest.contains('/') && rest.ends_with(".rs");
                let folder = rest.ends_with("/main.rs") && rest.matches('/').count() == 1;
                if direct || folder {
                    roots.insert(id);
                }
            }
        }
        first.extend(roots);
        first
    }

    /// Follows the `mod` declarations of a file.
    fn declare(
        &mut self,
        id: u32,
        root: u32,
        sources: &[Source<'_>],
        by_path: &HashMap<&str, u32>,
        seen: &mut HashSet<u32>,
    ) {
        let mut waiting = vec![id];
        while let Some(id) = waiting.pop() {
            let source = &sources[id as usize];
            let Code::Rust(code) = &source.facts.code else { continue };
            let (directory, name) = source
                .path
                .rsplit_once('/')
                .map_or(("", source.path.as_str()), |(d, n)| (d, n));
            let stem = name.strip_suffix(".rs").unwrap_or(name);
            let owns_directory = id == root || stem == "mod";
            let below = if owns_directory {
                directory.to_owned()
            } else {
                join(directory, stem)
            };
            for (def, entry) in source.facts.defs.iter().enumerate() {
                if entry.kind != Kind::Module {
                    continue;
                }
                let item = &code.items[def];
                let ItemKind::Module { inline: false, path } = item.kind else {
                    continue;
                };
                let (inline, scope) = inline_path(code, source.facts, item.outer);
                let name = source.facts.name(entry.name);
                let place = inline.iter().fold(below.clone(), |at, part| join(&at, part));
                let candidates = if path == NONE {
                    vec![
                        join(&place, &format!("{name}.rs")),
                        join(&place, &format!("{name}/mod.rs")),
                    ]
                } else {
                    let base = if inline.is_empty() { directory.to_owned() } else { place };
                    vec![join(&base, source.facts.name(path))]
                };
                let Some(&child) = candidates.iter().find_map(|path| by_path.get(path.as_str())) else {
                    continue;
                };
                self.files.insert((id, def as DefId), child);
                self.declared.entry(child).or_default().push((id, def as DefId));
                if seen.insert(child) {
                    let mut names = self.homes[id as usize].names.clone();
                    names.extend(inline);
                    names.push(name.to_owned());
                    self.homes[child as usize] = Home {
                        root,
                        parent: Some((id, scope)),
                        names,
                    };
                    waiting.push(child);
                }
            }
        }
    }
}

/// Returns the names of the inline modules around a scope, outermost first, and the innermost module scope.
pub fn inline_path(code: &RustCode, facts: &FileFacts, mut scope: ScopeId) -> (Vec<String>, ScopeId) {
    let mut names = Vec::new();
    let mut module = None;
    while let Some(at) = code.scopes.get(scope as usize) {
        match at.kind {
            ScopeKind::Module(def) => {
                module.get_or_insert(scope);
                names.push(facts.def_name(def).to_owned());
            }
            ScopeKind::File => {
                module.get_or_insert(scope);
            }
            _ => {}
        }
        scope = at.parent;
    }
    names.reverse();
    (names, module.unwrap_or(0))
}

/// Joins two relative paths, resolving `.` and `..`.
fn join(base: &str, rest: &str) -> String {
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}
