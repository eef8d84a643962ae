//! Resolution over the files of one such language.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use zero_contracts::find::Confidence;

use super::code::{Binding, Exported, Expr, ExprId, Link, ObjectCode, ScopeId};
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

    /// Names of methods that libraries have, too: a member of that name of an unknown value tells nothing.
    fn is_common(&self, name: &str) -> bool;
}

/// A definition of the program.
pub type Gid = (FileId, DefId);

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Ty {
    Instance(Gid),
    Class(Gid),
    Function(Gid),
    Module(FileId),
    List(Vec<Ty>),
}

/// Questions nested deeper than this have no answer.
const MAX_DEPTH: usize = 40;

/// The resolver.
pub struct ObjectResolver<M> {
    files: Arc<[ProgramFile]>,
    modules: M,
}

thread_local! {
    static ACTIVE: RefCell<HashSet<(FileId, ExprId)>> = RefCell::new(HashSet::new());
}

impl<M: Modules> ObjectResolver<M> {
    /// Makes a resolver.
    pub fn new(files: Arc<[ProgramFile]>, modules: M) -> Self {
        Self { files, modules }
    }

    fn facts(&self, file: FileId) -> &FileFacts {
        &self.files[file as usize].facts
    }

    fn code(&self, file: FileId) -> Option<&ObjectCode> {
        match &self.files[file as usize].facts.code {
            Code::Objects(code) => Some(code),
            _ => None,
        }
    }

    /// Returns the kind of a definition; a file as a whole is a module.
    fn kind(&self, gid: Gid) -> Kind {
        self.facts(gid.0)
            .defs
            .get(gid.1 as usize)
            .map_or(Kind::Module, |def| def.kind)
    }

    /// Looks a name up in the scopes around.
    fn lexical(&self, file: FileId, scope: ScopeId, name: &str, ty: bool, depth: usize) -> Vec<(Gid, Option<Ty>)> {
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
                    return self.bindings(file, &all, ty, depth);
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
                let found = self.exported(module, name, ty, depth + 1);
                if !found.is_empty() {
                    return found;
                }
            }
        }
        Vec::new()
    }

    fn bindings(&self, file: FileId, all: &[Binding], ty: bool, depth: usize) -> Vec<(Gid, Option<Ty>)> {
        let mut found = Vec::new();
        for binding in all {
            match binding {
                Binding::Def(def) => found.push(((file, *def), None)),
                Binding::Import(index) => found.extend(self.import(file, *index, ty, depth + 1)),
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
        let fits = |(gid, _): &(Gid, Option<Ty>)| if ty { !value_only(*gid) } else { !type_only(*gid) };
        if found.iter().any(fits) {
            found.retain(fits);
        }
        found
    }

    fn import_file(&self, file: FileId, index: u32) -> Option<FileId> {
        let import = self.code(file)?.imports.get(index as usize)?;
        self.modules.module(file, self.facts(file).name(import.module))
    }

    /// Returns what an import leads to. A module has no definition: it is given as a type alone, with a place that says
    /// so.
    fn import(&self, file: FileId, index: u32, ty: bool, depth: usize) -> Vec<(Gid, Option<Ty>)> {
        let Some(import) = self.code(file).and_then(|code| code.imports.get(index as usize)) else {
            return Vec::new();
        };
        if depth > MAX_DEPTH {
            return Vec::new();
        }
        let module = self.import_file(file, index);
        if import.name == NONE {
            return module.map(|m| ((m, NONE), Some(Ty::Module(m)))).into_iter().collect();
        }
        let Some(module) = module else { return Vec::new() };
        let name = self.facts(file).name(import.name);
        let found = self.exported(module, name, ty, depth + 1);
        if found.is_empty()
            && let Some(inner) = self.modules.submodule(module, name)
        {
            return vec![((inner, NONE), Some(Ty::Module(inner)))];
        }
        found
    }

    /// Returns what a module gives out under a name.
    fn exported(&self, file: FileId, name: &str, ty: bool, depth: usize) -> Vec<(Gid, Option<Ty>)> {
        let Some(code) = self.code(file).filter(|_| depth < MAX_DEPTH) else {
            return Vec::new();
        };
        if let Some(id) = self.facts(file).name_id(name) {
            let mut found = Vec::new();
            for export in code.exports.iter().filter(|export| export.name == id) {
                match export.of {
                    Exported::Local(local) => {
                        let local = self.facts(file).name(local);
                        found.extend(self.lexical(file, 0, local, ty, depth + 1));
                    }
                    Exported::Import(index) => found.extend(self.import(file, index, ty, depth + 1)),
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
            let found = self.bindings(file, &own, ty, depth + 1);
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
            let found = self.exported(module, name, ty, depth + 1);
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// Returns what a value may be.
    fn types(&self, file: FileId, expr: ExprId, depth: usize) -> Vec<Ty> {
        if expr == 0 || depth > MAX_DEPTH || !ACTIVE.with_borrow_mut(|active| active.insert((file, expr))) {
            return Vec::new();
        }
        let mut found = self.compute(file, expr, depth + 1);
        let mut seen = HashSet::new();
        found.retain(|ty| seen.insert(ty.clone()));
        found.truncate(8);
        ACTIVE.with_borrow_mut(|active| active.remove(&(file, expr)));
        found
    }

    fn compute(&self, file: FileId, expr: ExprId, depth: usize) -> Vec<Ty> {
        let Some(entry) = self.code(file).and_then(|code| code.exprs.get(expr as usize)) else {
            return Vec::new();
        };
        match entry {
            Expr::Unknown => Vec::new(),
            Expr::Name { scope, name, ty } => {
                let name = self.facts(file).name(*name);
                if let Some(value) = self.local_value(file, *scope, name) {
                    return value
                        .into_iter()
                        .flat_map(|value| self.types(file, value, depth))
                        .collect();
                }
                let found = self.lexical(file, *scope, name, *ty, depth);
                found
                    .into_iter()
                    .flat_map(|(gid, ty)| ty.map_or_else(|| self.value_of(gid, depth), |ty| vec![ty]))
                    .collect()
            }
            Expr::Member { of, name } => {
                let name = self.facts(file).name(*name);
                let mut found = Vec::new();
                for ty in self.types(file, *of, depth) {
                    if let Ty::Module(module) = ty {
                        for (gid, ty) in self.exported(module, name, false, depth) {
                            found.extend(ty.map_or_else(|| self.value_of(gid, depth), |ty| vec![ty]));
                        }
                        if found.is_empty()
                            && let Some(inner) = self.modules.submodule(module, name)
                        {
                            found.push(Ty::Module(inner));
                        }
                        continue;
                    }
                    for gid in self.members(&ty, name, depth) {
                        found.extend(self.value_of(gid, depth));
                    }
                }
                found
            }
            Expr::Call(callee) => {
                let mut found = Vec::new();
                for ty in self.types(file, *callee, depth) {
                    match ty {
                        Ty::Class(gid) => found.push(Ty::Instance(gid)),
                        Ty::Function(gid) => found.extend(self.results(gid, depth)),
                        Ty::Instance(gid) => {
                            for call in self.class_members(gid, "__call__", depth) {
                                found.extend(self.results(call, depth));
                            }
                        }
                        _ => {}
                    }
                }
                found
            }
            Expr::New(class) | Expr::Instance(class) => self
                .types(file, *class, depth)
                .into_iter()
                .filter_map(|ty| match ty {
                    Ty::Class(gid) | Ty::Instance(gid) => Some(Ty::Instance(gid)),
                    Ty::List(inner) => Some(Ty::List(inner)),
                    Ty::Function(_) | Ty::Module(_) => None,
                })
                .collect(),
            Expr::This(def) => vec![Ty::Instance((file, *def))],
            Expr::Class(def) => vec![Ty::Class((file, *def))],
            Expr::Super(def) => self.bases((file, *def), depth).into_iter().map(Ty::Instance).collect(),
            Expr::Object(def) => vec![Ty::Instance((file, *def))],
            Expr::Element(of) => self
                .types(file, *of, depth)
                .into_iter()
                .flat_map(|ty| if let Ty::List(inner) = ty { inner } else { Vec::new() })
                .collect(),
            Expr::List(of) => vec![Ty::List(self.types(file, *of, depth))],
            Expr::Choice(all) => all.iter().flat_map(|&e| self.types(file, e, depth)).collect(),
        }
    }

    /// Returns the values of a local variable, if the name is one.
    fn local_value(&self, file: FileId, scope: ScopeId, name: &str) -> Option<Vec<ExprId>> {
        let (code, id) = (self.code(file)?, self.facts(file).name_id(name)?);
        let mut at = scope;
        while let Some(entry) = code.scopes.get(at as usize) {
            if !entry.class || at == scope {
                let mut values = Vec::new();
                let mut any = false;
                for (_, binding) in entry.names.iter().filter(|(n, _)| *n == id) {
                    any = true;
                    if let Binding::Value(value) = binding {
                        values.push(*value);
                    }
                }
                if any {
                    return (!values.is_empty()).then_some(values);
                }
            }
            at = entry.parent;
        }
        None
    }

    /// Returns what a definition is as a value.
    fn value_of(&self, gid: Gid, depth: usize) -> Vec<Ty> {
        if gid.1 == NONE {
            return vec![Ty::Module(gid.0)];
        }
        let Some(item) = self.code(gid.0).and_then(|code| code.items.get(gid.1 as usize)) else {
            return Vec::new();
        };
        match self.kind(gid) {
            Kind::Class | Kind::Interface | Kind::Enum | Kind::Module | Kind::Struct | Kind::Union => {
                vec![Ty::Class(gid)]
            }
            Kind::TypeAlias => {
                let mut all = vec![Ty::Class(gid)];
                all.extend(
                    item.values
                        .iter()
                        .flat_map(|&value| self.types(gid.0, value, depth + 1)),
                );
                all
            }
            kind if kind.is_callable() && item.property => self.results(gid, depth),
            kind if kind.is_callable() => vec![Ty::Function(gid)],
            _ => item
                .values
                .iter()
                .flat_map(|&value| self.types(gid.0, value, depth + 1))
                .collect(),
        }
    }

    fn results(&self, gid: Gid, depth: usize) -> Vec<Ty> {
        let Some(item) = self.code(gid.0).and_then(|code| code.items.get(gid.1 as usize)) else {
            return Vec::new();
        };
        item.values
            .iter()
            .flat_map(|&value| self.types(gid.0, value, depth + 1))
            .collect()
    }

    fn bases(&self, gid: Gid, depth: usize) -> Vec<Gid> {
        let Some(item) = self.code(gid.0).and_then(|code| code.items.get(gid.1 as usize)) else {
            return Vec::new();
        };
        item.bases
            .iter()
            .flat_map(|&base| self.types(gid.0, base, depth + 1))
            .filter_map(|ty| match ty {
                Ty::Class(base) | Ty::Instance(base) if base != gid => Some(base),
                _ => None,
            })
            .collect()
    }

    /// Returns the members of a name of what a value is.
    fn members(&self, ty: &Ty, name: &str, depth: usize) -> Vec<Gid> {
        match ty {
            Ty::Instance(gid) | Ty::Class(gid) => self.class_members(*gid, name, depth),
            Ty::Function(gid) => self.inside(*gid, name),
            Ty::Module(file) => self
                .exported(*file, name, false, depth)
                .into_iter()
                .map(|(gid, _)| gid)
                .filter(|g| g.1 != NONE)
                .collect(),
            Ty::List(_) => Vec::new(),
        }
    }

    fn inside(&self, gid: Gid, name: &str) -> Vec<Gid> {
        let facts = self.facts(gid.0);
        let Some(id) = facts.name_id(name) else {
            return Vec::new();
        };
        let own = |(_, def): &(usize, &crate::facts::Def)| def.container == gid.1 && def.name == id && !def.further;
        facts
            .defs
            .iter()
            .enumerate()
            .filter(own)
            .map(|(def, _)| (gid.0, def as DefId))
            .collect()
    }

    fn class_members(&self, gid: Gid, name: &str, depth: usize) -> Vec<Gid> {
        if depth > MAX_DEPTH {
            return Vec::new();
        }
        let own = self.inside(gid, name);
        if !own.is_empty() {
            return own;
        }
        for base in self.bases(gid, depth + 1) {
            let found = self.class_members(base, name, depth + 1);
            if !found.is_empty() {
                return found;
            }
        }
        // An alias has the members of what it stands for.
        if self.kind(gid) == Kind::TypeAlias {
            let mut found = Vec::new();
            for ty in self.results(gid, depth + 1) {
                if let Ty::Class(of) | Ty::Instance(of) = ty
                    && of != gid
                {
                    found.extend(self.class_members(of, name, depth + 1));
                }
            }
            return found;
        }
        Vec::new()
    }

    fn targets(&self, file: FileId, id: UseId) -> Vec<(Gid, Confidence)> {
        let Some(link) = self.code(file).and_then(|code| code.links.get(id as usize)).copied() else {
            return Vec::new();
        };
        let name = self.facts(file).name(self.facts(file).uses[id as usize].name);
        let exact =
            |found: Vec<(Gid, Option<Ty>)>| found.into_iter().map(|(gid, _)| (gid, Confidence::Exact)).collect();
        match link {
            Link::Name { scope, ty } => {
                if self.local_value(file, scope, name).is_some() {
                    return Vec::new();
                }
                exact(self.lexical(file, scope, name, ty, 0))
            }
            Link::Import(index) => {
                let mut found = self.import(file, index, false, 0);
                for more in self.import(file, index, true, 0) {
                    if !found.contains(&more) {
                        found.push(more);
                    }
                }
                exact(found)
            }
            Link::Member { of } => {
                let types = self.types(file, of, 0);
                let mut found = Vec::new();
                for ty in &types {
                    for gid in self.members(ty, name, 0) {
                        if !found.contains(&gid) {
                            found.push(gid);
                        }
                    }
                }
                if !found.is_empty() {
                    let sure = if types.len() == 1 {
                        Confidence::Exact
                    } else {
                        Confidence::Scoped
                    };
                    return found.into_iter().map(|gid| (gid, sure)).collect();
                }
                if types.is_empty() && !self.is_external(file, of, 0) {
                    self.only_named(name)
                } else {
                    Vec::new()
                }
            }
            Link::Unknown => Vec::new(),
        }
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
            Some(Expr::Member { of, .. } | Expr::Call(of) | Expr::New(of) | Expr::Instance(of) | Expr::Element(of)) => {
                self.is_external(file, *of, depth + 1)
            }
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
                for (gid, _) in self.import(file, index as u32, false, 0) {
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
