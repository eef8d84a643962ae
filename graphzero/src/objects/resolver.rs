//! Resolution over the files of one such language.

use std::collections::HashSet;
use std::sync::Arc;

use zero_contracts::find::Confidence;

use super::code::{Binding, Exported, Expr, ExprId, Item, Link, ObjectCode, ScopeId};
use super::infer::{Known, MAX_DEPTH};
use super::ty::{Env, Gid, Ty};
use crate::code::Code;
use crate::facts::{DefId, FileFacts, Kind, NONE, UseId};
use crate::program::{FileId, ImportEdge, ProgramFile, Resolver, Target};

/// How a language finds files.
pub trait Modules: Send + Sync {
    /// Returns the file that a module written in a file means.
    fn module(&self, from: FileId, module: &str) -> Option<FileId>;

    /// Returns the module of a name below a module's file, where packages hold modules.
    fn submodule(&self, of: FileId, name: &str) -> Option<FileId>;

    /// Returns the module path of a file.
    fn path(&self, file: FileId) -> Vec<String>;

    /// Returns what a method of the language's own collections does.
    fn builtin(&self, _name: &str) -> Option<Builtin> {
        None
    }

    /// Names of methods that libraries have, too: a member of that name of an unknown value tells nothing.
    fn is_common(&self, name: &str) -> bool;
}

/// What a method of the language's own collections does with their elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// It takes elements.
    Takes,
    /// It gives an element.
    Gives,
    /// It gives a collection of the same elements.
    Same,
    /// It calls its function with elements, as so many of its first parameters, and gives a collection of the same.
    Filter(u8),
    /// It calls its function with an element and gives one.
    Find,
    /// It calls its function with an element and gives a collection of the results.
    Map,
    /// It calls its function with what was gathered and an element, and gives what was gathered.
    Reduce,
    /// It calls its function with the value itself, and gives the result.
    Then,
}

/// Which of the definitions of one name are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Those that name a type.
    Type,
    /// Those that have a value.
    Value,
    /// All: definitions that are declared under one name in one scope are one symbol.
    Any,
}

impl Space {
    /// Makes the space of a mention.
    pub const fn of(ty: bool) -> Self {
        if ty { Self::Type } else { Self::Value }
    }
}

/// The resolver.
pub struct ObjectResolver<M> {
    files: Arc<[ProgramFile]>,
    /// How files are found.
    pub modules: M,
    /// What values were found to be.
    pub memo: Known,
}

impl<M: Modules> ObjectResolver<M> {
    /// Makes a resolver.
    pub fn new(files: Arc<[ProgramFile]>, modules: M) -> Self {
        Self {
            files,
            modules,
            memo: Known::new(),
        }
    }

    /// Returns the facts of a file.
    pub fn facts(&self, file: FileId) -> &FileFacts {
        &self.files[file as usize].facts
    }

    /// Returns the code of a file.
    pub fn code(&self, file: FileId) -> Option<&ObjectCode> {
        match &self.files[file as usize].facts.code {
            Code::Objects(code) => Some(code),
            _ => None,
        }
    }

    /// Returns the resolver's part of a definition.
    pub fn item(&self, gid: Gid) -> Option<&Item> {
        self.code(gid.0)?.items.get(gid.1 as usize)
    }

    /// Returns the kind of a definition; a file as a whole is a module.
    pub fn kind(&self, gid: Gid) -> Kind {
        self.facts(gid.0)
            .defs
            .get(gid.1 as usize)
            .map_or(Kind::Module, |def| def.kind)
    }

    /// Looks a name up in the scopes around. A module is a definition [`NONE`] of its file.
    pub fn lexical(&self, file: FileId, scope: ScopeId, name: &str, space: Space, depth: usize) -> Vec<Gid> {
        let (Some(code), Some(id)) = (self.code(file), self.facts(file).name_id(name)) else {
            return Vec::new();
        };
        let mut at = scope;
        while let Some(entry) = code.scopes.get(at as usize) {
            if !entry.class || at == scope {
                let all: Vec<Binding> = entry
                    .names
                    .iter()
                    .filter(|(n, _)| *n == id)
                    .map(|(_, binding)| *binding)
                    .collect();
                if !all.is_empty() {
                    return self.bindings(file, &all, space, depth);
                }
            }
            at = entry.parent;
        }
        // `from module import *`.
        for (index, import) in code.imports.iter().enumerate() {
            if import.star {
                let Some(module) = self.import_file(file, index as u32) else {
                    continue;
                };
                let found = self.exported(module, name, space, depth + 1);
                if !found.is_empty() {
                    return found;
                }
            }
        }
        Vec::new()
    }

    fn bindings(&self, file: FileId, all: &[Binding], space: Space, depth: usize) -> Vec<Gid> {
        let mut found: Vec<Gid> = Vec::new();
        for binding in all {
            match binding {
                Binding::Def(def) => found.push((file, *def)),
                Binding::Import(index) => found.extend(self.import(file, *index, space, depth + 1)),
                Binding::Value(_) => {}
            }
        }
        let type_only = |gid: Gid| matches!(self.kind(gid), Kind::Interface | Kind::TypeAlias);
        let value_only = |gid: Gid| {
            matches!(
                self.kind(gid),
                Kind::Function | Kind::Variable | Kind::Constant | Kind::Method
            )
        };
        let fits = |gid: &Gid| match space {
            Space::Type => !value_only(*gid),
            Space::Value => !type_only(*gid),
            Space::Any => true,
        };
        if found.iter().any(fits) {
            found.retain(fits);
        }
        found
    }

    fn import_file(&self, file: FileId, index: u32) -> Option<FileId> {
        let import = self.code(file)?.imports.get(index as usize)?;
        self.modules.module(file, self.facts(file).name(import.module))
    }

    /// Returns what an import leads to.
    fn import(&self, file: FileId, index: u32, space: Space, depth: usize) -> Vec<Gid> {
        let Some(import) = self.code(file).and_then(|code| code.imports.get(index as usize)) else {
            return Vec::new();
        };
        if depth > MAX_DEPTH {
            return Vec::new();
        }
        let module = self.import_file(file, index);
        if import.name == NONE {
            return module.map(|m| (m, NONE)).into_iter().collect();
        }
        let Some(module) = module else { return Vec::new() };
        let name = self.facts(file).name(import.name);
        let found = self.exported(module, name, space, depth + 1);
        if found.is_empty()
            && let Some(inner) = self.modules.submodule(module, name)
        {
            return vec![(inner, NONE)];
        }
        found
    }

    /// Returns what a module gives out under a name.
    pub fn exported(&self, file: FileId, name: &str, space: Space, depth: usize) -> Vec<Gid> {
        let Some(code) = self.code(file).filter(|_| depth < MAX_DEPTH) else {
            return Vec::new();
        };
        if let Some(id) = self.facts(file).name_id(name) {
            let mut found = Vec::new();
            for export in code.exports.iter().filter(|export| export.name == id) {
                match export.of {
                    Exported::Local(local) => {
                        let local = self.facts(file).name(local);
                        found.extend(self.lexical(file, 0, local, space, depth + 1));
                    }
                    Exported::Import(index) => found.extend(self.import(file, index, space, depth + 1)),
                    Exported::Value(_) => {}
                }
            }
            if !found.is_empty() {
                return found;
            }
            let own: Vec<Binding> = code.scopes[0]
                .names
                .iter()
                .filter(|(n, _)| *n == id)
                .map(|(_, binding)| *binding)
                .collect();
            let found = self.bindings(file, &own, space, depth + 1);
            if !found.is_empty() {
                return found;
            }
        }
        let stars = code
            .exports
            .iter()
            .filter(|export| export.name == NONE)
            .filter_map(|export| match export.of {
                Exported::Import(index) => Some(index),
                _ => None,
            });
        let python = code
            .imports
            .iter()
            .enumerate()
            .filter(|(_, i)| i.star)
            .map(|(index, _)| index as u32);
        for index in stars.chain(python) {
            let Some(module) = self.import_file(file, index).filter(|&m| m != file) else {
                continue;
            };
            let found = self.exported(module, name, space, depth + 1);
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    fn targets(&self, file: FileId, id: UseId) -> Vec<(Gid, Confidence)> {
        let Some(link) = self.code(file).and_then(|code| code.links.get(id as usize)).copied() else {
            return Vec::new();
        };
        self.begin();
        let name = self.facts(file).name(self.facts(file).uses[id as usize].name);
        let exact = |found: Vec<Gid>| found.into_iter().map(|gid| (gid, Confidence::Exact)).collect();
        match link {
            Link::Name { scope, ty } => {
                if self.local_value(file, scope, name).is_some() {
                    return Vec::new();
                }
                let found = self.lexical(file, scope, name, Space::Any, 0);
                // The language's own types (`bigint`) may share their names with values.
                let only_values = found
                    .iter()
                    .all(|gid| matches!(self.kind(*gid), Kind::Function | Kind::Variable | Kind::Constant));
                if ty && only_values { Vec::new() } else { exact(found) }
            }
            Link::Import(index) => exact(self.import(file, index, Space::Any, 0)),
            Link::Member { of } => {
                let types = self.types(file, of, &Env::default(), 0);
                let found = self.of_types(&types, name);
                if !found.is_empty() {
                    found
                } else if types.is_empty() && !self.is_external(file, of, 0) {
                    self.only_named(name)
                } else {
                    Vec::new()
                }
            }
            // A key is a member of what is expected only if each of several things that may be expected has it.
            Link::Key { of } => {
                let mut found = self.of_types(&self.types(file, of, &Env::default(), 0), name);
                found.retain(|(_, sure)| *sure == Confidence::Exact);
                found
            }
            Link::Unknown => Vec::new(),
        }
    }

    /// Returns the members of a name of what a value may be: sure if each has it.
    fn of_types(&self, types: &[Ty], name: &str) -> Vec<(Gid, Confidence)> {
        let mut found: Vec<Gid> = Vec::new();
        let mut all_have = true;
        for ty in types {
            let members = self.members(ty, name, 0);
            all_have &= !members.is_empty() || matches!(ty, Ty::Primitive | Ty::Literal(_));
            for (gid, _) in members {
                if !found.contains(&gid) {
                    found.push(gid);
                }
            }
        }
        let sure = if all_have {
            Confidence::Exact
        } else {
            Confidence::Scoped
        };
        found.into_iter().map(|gid| (gid, sure)).collect()
    }

    /// Tells whether a value comes from a library: then its members are none of the tree's.
    fn is_external(&self, file: FileId, expr: ExprId, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        let Some(code) = self.code(file) else { return false };
        match code.exprs.get(expr as usize) {
            Some(Expr::Name { scope, name, .. }) => {
                let mut at = *scope;
                while let Some(entry) = code.scopes.get(at as usize) {
                    if let Some((_, binding)) = entry.names.iter().find(|(n, _)| n == name) {
                        return match binding {
                            Binding::Import(index) => self.import_file(file, *index).is_none(),
                            Binding::Value(value) => self.is_external(file, *value, depth + 1),
                            Binding::Def(_) => false,
                        };
                    }
                    at = entry.parent;
                }
                // Nothing declares it: the language's own.
                true
            }
            Some(
                Expr::Member { of, .. }
                | Expr::New(of)
                | Expr::Instance(of)
                | Expr::Element(of)
                | Expr::Apply { of, .. }
                | Expr::Narrow { of, .. }
                | Expr::Guarded { of, .. },
            ) => self.is_external(file, *of, depth + 1),
            Some(Expr::Call(call)) => self.is_external(file, code.calls[*call as usize].callee, depth + 1),
            Some(Expr::Record(_) | Expr::Literal(_) | Expr::Primitive) => true,
            _ => false,
        }
    }

    /// Returns the only member of a name, when nothing is known of the value.
    fn only_named(&self, name: &str) -> Vec<(Gid, Confidence)> {
        if self.modules.is_common(name) {
            return Vec::new();
        }
        let mut found: Vec<Gid> = Vec::new();
        for file in 0..self.files.len() as FileId {
            let facts = self.facts(file);
            let Some(id) = facts.name_id(name) else { continue };
            for (def, entry) in facts.defs.iter().enumerate() {
                let member = facts
                    .defs
                    .get(entry.container as usize)
                    .is_some_and(|c| c.kind.is_type());
                if entry.name == id && member {
                    found.push((file, def as DefId));
                }
            }
        }
        let mut holders: Vec<(FileId, DefId)> = found
            .iter()
            .map(|gid| (gid.0, self.facts(gid.0).defs[gid.1 as usize].container))
            .collect();
        holders.dedup();
        if holders.len() == 1 {
            found.into_iter().map(|gid| (gid, Confidence::Name)).collect()
        } else {
            Vec::new()
        }
    }
}

impl<M: Modules> Resolver for ObjectResolver<M> {
    fn resolve(&self, file: FileId, use_id: UseId) -> Vec<Target> {
        let mut seen = HashSet::new();
        let mut found: Vec<Target> = self
            .targets(file, use_id)
            .into_iter()
            .filter(|(gid, _)| gid.1 != NONE && seen.insert(*gid))
            .map(|((file, def), confidence)| Target { file, def, confidence })
            .collect();
        if found.iter().any(|t| !self.facts(t.file).defs[t.def as usize].inactive) {
            found.retain(|t| !self.facts(t.file).defs[t.def as usize].inactive);
        }
        found.sort_by_key(|t| (t.confidence, t.file, self.facts(t.file).defs[t.def as usize].at.start));
        found
    }

    fn module_path(&self, file: FileId) -> Vec<String> {
        self.modules.path(file)
    }

    fn imports(&self, file: FileId) -> Vec<ImportEdge> {
        let Some(code) = self.code(file) else { return Vec::new() };
        let facts = self.facts(file);
        let mut edges: Vec<ImportEdge> = Vec::new();
        for (index, import) in code.imports.iter().enumerate() {
            let mut text = facts.name(import.module).to_owned();
            if import.star {
                text.push_str(" *");
            } else if import.name != NONE {
                text.push(' ');
                text.push_str(facts.name(import.name));
            }
            let mut edge = ImportEdge {
                text,
                at: import.at,
                end: import.end,
                files: Vec::new(),
                targets: Vec::new(),
            };
            edge.files.extend(self.import_file(file, index as u32));
            if !import.star {
                for gid in self.import(file, index as u32, Space::Value, 0) {
                    edge.files.push(gid.0);
                    if gid.1 != NONE {
                        edge.targets.push(Target {
                            file: gid.0,
                            def: gid.1,
                            confidence: Confidence::Exact,
                        });
                    }
                }
            }
            edge.files.sort_unstable();
            edge.files.dedup();
            edges.push(edge);
        }
        edges.sort_by_key(|edge| (edge.at, edge.end));
        edges
    }

    fn aliases(&self, name: &str) -> Vec<String> {
        let mut found = HashSet::new();
        // Modules that give it out under another name, `default` above all.
        let mut given: Vec<(FileId, String)> = Vec::new();
        for file in 0..self.files.len() as FileId {
            let (Some(id), Some(code)) = (self.facts(file).name_id(name), self.code(file)) else {
                continue;
            };
            for export in &code.exports {
                let local = match export.of {
                    Exported::Local(local) => local,
                    Exported::Import(index) => code.imports[index as usize].name,
                    Exported::Value(_) => continue,
                };
                if local == id && export.name != id && export.name != NONE {
                    given.push((file, self.facts(file).name(export.name).to_owned()));
                }
            }
        }
        for file in 0..self.files.len() as FileId {
            let (facts, Some(code)) = (self.facts(file), self.code(file)) else {
                continue;
            };
            let own = facts.name_id(name);
            for (bound, binding) in code.scopes.iter().flat_map(|scope| &scope.names) {
                let Binding::Import(index) = binding else { continue };
                let import = &code.imports[*index as usize];
                let renamed = own == Some(import.name) && own != Some(*bound);
                let other = || {
                    given.iter().any(|(module, as_name)| {
                        facts.name(import.name) == as_name && self.import_file(file, *index) == Some(*module)
                    })
                };
                if import.name != NONE && (renamed || other()) {
                    found.insert(facts.name(*bound).to_owned());
                }
            }
        }
        found.extend(
            given
                .into_iter()
                .map(|(_, as_name)| as_name)
                .filter(|as_name| as_name != "default"),
        );
        let mut found: Vec<String> = found.into_iter().collect();
        found.sort();
        found
    }
}
