//! The resolver over all Rust files of a tree: its tables, and the answers it gives to the engine.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, OnceLock};

use zero_contracts::CancelToken;
use zero_contracts::find::Confidence;

use super::code::{Base, ExprId, Item, ItemKind, Link, Ns, RustCode, ScopeId, TypeRef};
use super::lookup::Entity;
use super::members::{ImplInfo, Member, NamedMembers};
use super::modules::{Modules, Source};
use super::ty::{Gid, Ty};
use crate::code::Code;
use crate::facts::{Def, DefId, FileFacts, Kind, NONE, Span, UseId};
use crate::memo::Memo;
use crate::parse::Parsing;
use crate::program::{FileId, ImportEdge, ProgramFile, Resolver, Target};

/// What the standard library offers, written down as signatures.
static STD: LazyLock<Option<Arc<FileFacts>>> = LazyLock::new(|| {
    let token = CancelToken::new();
    let text = include_str!("std_model.rs.txt");
    crate::pool::on_large_stack(&token, || super::lower::facts(text, &mut Parsing::new(&token)))
        .ok()
        .map(Arc::new)
});

/// The facts of a manifest or of another file without code.
static EMPTY: LazyLock<RustCode> = LazyLock::new(RustCode::default);

/// Names declared in one scope.
pub type Declared = HashMap<Box<str>, Vec<DefId>>;

/// The resolver.
pub struct RustResolver {
    /// The files, and after them the model of the standard library.
    pub files: Vec<Arc<FileFacts>>,
    /// Files from here on are not part of the tree.
    pub external: u32,
    /// Their place among the modules.
    pub modules: Modules,
    /// Names declared in a module scope.
    pub scopes: Memo<(u32, ScopeId), Arc<Declared>>,
    /// Entities of uses.
    pub uses: Memo<(u32, UseId), Arc<[Entity]>>,
    /// Members by name.
    pub members: Memo<Box<str>, Arc<NamedMembers>>,
    /// Implementations.
    pub impls: Memo<Gid, Arc<ImplInfo>>,
    /// Types of expressions.
    pub types: Memo<(u32, ExprId), Ty>,
    /// Implementations of traits by the trait's name.
    pub trait_impls: OnceLock<HashMap<Box<str>, Vec<Gid>>>,
    /// Stretches of each file that the default configuration leaves out.
    pub left_out: OnceLock<Vec<Vec<Span>>>,
    /// Macros by name.
    pub macros: OnceLock<HashMap<Box<str>, Vec<Gid>>>,
}

impl RustResolver {
    /// Makes the resolver of a program.
    pub fn new(files: &[ProgramFile]) -> Self {
        let sources: Vec<Source<'_>> = files
            .iter()
            .map(|file| Source {
                path: file.path.to_string(),
                facts: &file.facts,
            })
            .collect();
        let mut modules = Modules::new(&sources);
        let external = files.len() as u32;
        let mut all: Vec<Arc<FileFacts>> = files.iter().map(|file| Arc::clone(&file.facts)).collect();
        if let Some(std) = STD.as_ref() {
            modules.homes.push(super::modules::Home {
                root: external,
                parent: None,
                names: vec!["std".into()],
            });
            for name in ["std", "core", "alloc"] {
                modules.crates.entry(name.into()).or_insert_with(|| vec![external]);
            }
            all.push(Arc::clone(std));
        }
        Self {
            files: all,
            external,
            modules,
            scopes: Memo::new(),
            uses: Memo::new(),
            members: Memo::new(),
            impls: Memo::new(),
            types: Memo::new(),
            trait_impls: OnceLock::new(),
            left_out: OnceLock::new(),
            macros: OnceLock::new(),
        }
    }

    /// Returns a file's facts.
    pub fn facts(&self, file: u32) -> &FileFacts {
        &self.files[file as usize]
    }

    /// Returns a file's code.
    pub fn code(&self, file: u32) -> &RustCode {
        match &self.files[file as usize].code {
            Code::Rust(code) => code,
            _ => &EMPTY,
        }
    }

    /// Returns a definition.
    pub fn def(&self, gid: Gid) -> &Def {
        &self.facts(gid.file).defs[gid.def as usize]
    }

    /// Returns a definition's name.
    pub fn name(&self, gid: Gid) -> &str {
        self.facts(gid.file).def_name(gid.def)
    }

    /// Returns a definition's resolver part.
    pub fn item(&self, gid: Gid) -> &Item {
        &self.code(gid.file).items[gid.def as usize]
    }

    /// Returns what a definition lies in.
    pub fn container(&self, gid: Gid) -> Option<Gid> {
        let container = self.def(gid).container;
        (container != NONE).then_some(Gid {
            file: gid.file,
            def: container,
        })
    }

    /// Returns the definitions directly inside another, by a filter on their kind.
    pub fn inside(&self, of: Gid, name: &str, want: impl Fn(Kind) -> bool) -> Vec<Gid> {
        let facts = self.facts(of.file);
        let Some(name) = facts.name_id(name) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (def, entry) in facts.defs.iter().enumerate().skip(of.def as usize + 1) {
            if entry.at.start > self.def(of).full.end {
                break;
            }
            if entry.container == of.def && entry.name == name && want(entry.kind) {
                found.push(Gid {
                    file: of.file,
                    def: def as DefId,
                });
            }
        }
        found
    }

    /// Returns the definition of the model of the standard library with a name.
    pub fn std(&self, name: &str) -> Option<Gid> {
        let facts = self.files.get(self.external as usize)?;
        let id = facts.name_id(name)?;
        let def = facts.defs.iter().position(|def| def.name == id && def.kind.is_type())?;
        Some(Gid {
            file: self.external,
            def: def as DefId,
        })
    }

    /// Returns what a use refers to, with how sure that is.
    fn targets(&self, file: u32, id: UseId) -> Vec<(Gid, Confidence)> {
        let Some(link) = self.code(file).links.get(id as usize).copied() else {
            return Vec::new();
        };
        let name = self.facts(file).name(self.facts(file).uses[id as usize].name);
        match link {
            Link::Path { .. } => {
                let entities = self.resolve_use(file, id);
                let mut found: Vec<Gid> = entities.iter().filter_map(Entity::definition).collect();
                let call = self.code(file).call_of(id);
                if call != NONE {
                    let members = found
                        .iter()
                        .map(|&gid| Member {
                            gid,
                            subst: self.path_subst(file, id, gid),
                        })
                        .collect();
                    found = self
                        .fitting(file, members, call)
                        .into_iter()
                        .map(|member| member.gid)
                        .collect();
                    if let [only] = found[..]
                        && let Some(implementing) = self.through_trait(file, id, only, call)
                    {
                        found = vec![implementing];
                    }
                }
                let guess = found.len() > 1 && entities.iter().any(|e| matches!(e, Entity::Guess(_)));
                let sure = if guess { Confidence::Scoped } else { Confidence::Exact };
                found.into_iter().map(|gid| (gid, sure)).collect()
            }
            Link::Method { recv, .. } => {
                let ty = self.type_of(file, recv);
                if let Some(declared) = self.method_of_where(file, id, &ty, name) {
                    return vec![(declared, Confidence::Exact)];
                }
                let found = self.fitting(file, self.method(&ty, name), self.code(file).call_of(id));
                if !found.is_empty() {
                    if let [only] = &found[..]
                        && let Some(through) = self.through_mutable(file, id, recv, &ty, only.gid)
                    {
                        return vec![through];
                    }
                    let sure = if found.len() == 1 && !ty.strip().is_unknown() {
                        Confidence::Exact
                    } else {
                        Confidence::Scoped
                    };
                    return found.into_iter().map(|member| (member.gid, sure)).collect();
                }
                self.by_name_only(file, &ty, name, |kind| matches!(kind, Kind::Method | Kind::TraitMethod))
            }
            Link::Field { recv } => {
                let ty = self.type_of(file, recv);
                let found = self.field(&ty, name);
                if !found.is_empty() {
                    return found.into_iter().map(|gid| (gid, Confidence::Exact)).collect();
                }
                self.by_name_only(file, &ty, name, |kind| kind == Kind::Field)
            }
            Link::FieldOf { of } => {
                let records = self.records_of(file, of);
                records
                    .into_iter()
                    .flat_map(|record| self.inside(record, name, |kind| kind == Kind::Field))
                    .map(|gid| (gid, Confidence::Exact))
                    .collect()
            }
        }
    }

    /// Returns the only definition of a name, when the receiver's type is not known.
    fn by_name_only(&self, _file: u32, ty: &Ty, name: &str, want: impl Fn(Kind) -> bool) -> Vec<(Gid, Confidence)> {
        if !ty.strip().is_unknown() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for file in 0..self.files.len() as u32 {
            let facts = self.facts(file);
            let Some(id) = facts.name_id(name) else { continue };
            for (def, entry) in facts.defs.iter().enumerate() {
                if entry.name == id && want(entry.kind) {
                    // A library's method of that name is as likely.
                    if file >= self.external {
                        return Vec::new();
                    }
                    found.push(Gid {
                        file,
                        def: def as DefId,
                    });
                }
            }
        }
        // A trait's method stands for its implementations.
        if found.len() > 1 {
            let declared: Vec<Gid> = found
                .iter()
                .copied()
                .filter(|g| self.def(*g).kind == Kind::TraitMethod)
                .collect();
            if declared.len() == 1 {
                found = declared;
            }
        }
        if found.len() == 1 {
            found.into_iter().map(|gid| (gid, Confidence::Name)).collect()
        } else {
            Vec::new()
        }
    }

    /// Returns the struct, union or variant that a type written in a literal or pattern denotes.
    pub fn records_of(&self, file: u32, of: u32) -> Vec<Gid> {
        if let Some(TypeRef::Path(id)) = self.code(file).types.get(of as usize) {
            let entities = self.resolve_use(file, *id);
            let variants: Vec<Gid> = entities
                .iter()
                .filter_map(Entity::definition)
                .filter(|gid| self.def(*gid).kind == Kind::EnumMember)
                .collect();
            if !variants.is_empty() {
                return variants;
            }
        }
        match self.lower_type(file, of) {
            Ty::Adt(gid, _) => vec![gid],
            _ => Vec::new(),
        }
    }
}

impl Resolver for RustResolver {
    fn resolve(&self, file: FileId, use_id: UseId) -> Vec<Target> {
        let mut seen = HashSet::new();
        let mut found: Vec<Target> = self
            .targets(file, use_id)
            .into_iter()
            .filter(|(gid, _)| gid.file < self.external && seen.insert(*gid))
            .filter(|(gid, _)| self.def(*gid).kind != Kind::Impl)
            .map(|(gid, confidence)| Target {
                file: gid.file,
                def: gid.def,
                confidence,
            })
            .collect();
        // What the default configuration leaves out is a candidate, and so is whatever is used there.
        let left_out = self.is_left_out(file, self.facts(file).uses[use_id as usize].at);
        for target in &mut found {
            let gid = Gid {
                file: target.file,
                def: target.def,
            };
            if left_out || self.is_inactive(gid) {
                target.confidence = target.confidence.max(Confidence::Scoped);
            }
        }
        found.sort_by_key(|t| (t.confidence, t.file, self.facts(t.file).defs[t.def as usize].at.start));
        found
    }

    fn module_path(&self, file: FileId) -> Vec<String> {
        self.modules
            .homes
            .get(file as usize)
            .map(|home| home.names.clone())
            .unwrap_or_default()
    }

    fn imports(&self, file: FileId) -> Vec<ImportEdge> {
        let (facts, code) = (self.facts(file), self.code(file));
        let mut edges = Vec::new();
        for scope in &code.scopes {
            for import in &scope.imports {
                let entities: Vec<Entity> = match import.base {
                    Base::Use(id) => self.resolve_use(file, id).to_vec(),
                    base => self.resolve_base(file, base, 0, 0),
                };
                let mut edge = ImportEdge {
                    text: self.import_text(file, import.base, import.glob, facts.name(import.text)),
                    at: import.at,
                    end: import.end,
                    files: Vec::new(),
                    targets: Vec::new(),
                };
                for entity in entities {
                    if let Entity::Module(at, 0) = entity
                        && at < self.external
                    {
                        edge.files.push(at);
                    }
                    if let Some(gid) = entity.definition().filter(|gid| gid.file < self.external) {
                        edge.files.push(gid.file);
                        edge.targets.push(Target {
                            file: gid.file,
                            def: gid.def,
                            confidence: Confidence::Exact,
                        });
                    }
                }
                edge.files.sort_unstable();
                edge.files.dedup();
                edges.push(edge);
            }
        }
        for (def, entry) in facts.defs.iter().enumerate() {
            if let Some(&child) = self.modules.files.get(&(file, def as DefId)) {
                edges.push(ImportEdge {
                    text: format!("mod {}", facts.name(entry.name)),
                    at: entry.at.start,
                    end: entry.at.end,
                    files: vec![child],
                    targets: vec![Target {
                        file,
                        def: def as DefId,
                        confidence: Confidence::Exact,
                    }],
                });
            }
        }
        edges.sort_by_key(|edge| (edge.at, edge.end));
        edges
    }

    fn aliases(&self, name: &str) -> Vec<String> {
        let mut found = HashSet::new();
        for (file, facts) in self.files.iter().enumerate() {
            let Some(id) = facts.name_id(name) else { continue };
            for scope in &self.code(file as u32).scopes {
                for import in &scope.imports {
                    if let Base::Use(target) = import.base
                        && facts.uses[target as usize].name == id
                        && import.alias != NONE
                        && import.alias != id
                    {
                        found.insert(facts.name(import.alias).to_owned());
                    }
                }
            }
        }
        let mut found: Vec<String> = found.into_iter().collect();
        found.sort();
        found
    }

    fn is_copy(&self, file: FileId, def: DefId) -> bool {
        Self::is_copy(self, Gid { file, def })
    }

    fn overridden(&self, file: FileId, def: DefId) -> Vec<Target> {
        let gid = Gid { file, def };
        let Some(container) = self.container(gid).filter(|c| self.def(*c).kind == Kind::Impl) else {
            return Vec::new();
        };
        let info = self.impl_info(container);
        let Some((of, _)) = &info.of else { return Vec::new() };
        self.inside(*of, self.name(gid), |_| true)
            .into_iter()
            .filter(|gid| gid.file < self.external)
            .map(|gid| Target {
                file: gid.file,
                def: gid.def,
                confidence: Confidence::Exact,
            })
            .collect()
    }
}

impl RustResolver {
    /// Writes an import as a path.
    fn import_text(&self, file: u32, base: Base, glob: bool, own: &str) -> String {
        let mut parts = Vec::new();
        let mut at = base;
        loop {
            match at {
                Base::Use(id) => {
                    parts.push(
                        self.facts(file)
                            .name(self.facts(file).uses[id as usize].name)
                            .to_owned(),
                    );
                    match self.code(file).links[id as usize] {
                        Link::Path { base, .. } => at = base,
                        _ => break,
                    }
                }
                Base::Crate => {
                    parts.push("crate".into());
                    break;
                }
                Base::Module(0) => {
                    parts.push("self".into());
                    break;
                }
                Base::Module(up) => {
                    parts.extend((0..up).map(|_| "super".to_owned()));
                    break;
                }
                _ => break,
            }
        }
        parts.reverse();
        if glob {
            parts.push("*".into());
        }
        let text = parts.join("::");
        match own.split_once(" as ") {
            Some((_, alias)) => format!("{text} as {}", alias.trim()),
            None => text,
        }
    }

    /// Tells whether a definition lives in a namespace.
    pub fn in_namespace(&self, gid: Gid, ns: Ns) -> bool {
        let kind = self.def(gid).kind;
        match ns {
            Ns::Any | Ns::Argument => !matches!(kind, Kind::Field | Kind::Impl),
            Ns::Macro => kind == Kind::Macro,
            Ns::Type => kind.is_type() || matches!(kind, Kind::Module | Kind::EnumMember),
            Ns::Value => match kind {
                Kind::Struct => !self.has_named_fields(gid),
                Kind::Function
                | Kind::Method
                | Kind::StaticMethod
                | Kind::TraitMethod
                | Kind::Constant
                | Kind::StaticVariable
                | Kind::EnumMember => true,
                _ => false,
            },
        }
    }

    fn has_named_fields(&self, gid: Gid) -> bool {
        let tuple = matches!(&self.item(gid).kind, ItemKind::Record { tuple } if !tuple.is_empty());
        !tuple
            && self
                .facts(gid.file)
                .defs
                .iter()
                .any(|def| def.container == gid.def && def.kind == Kind::Field)
    }
}
