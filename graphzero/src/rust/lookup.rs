//! Paths: scopes, modules, imports, globs and preludes; and types as they are written.

use std::collections::HashMap;
use std::sync::Arc;

use super::code::ItemKind;
use super::code::{Base, Import, Link, Ns, Prim, ScopeId, ScopeKind, TypeRef};
use super::infer::Level;
use super::resolver::RustResolver;
use super::ty::{Bound, Gid, Subst, Ty};
use crate::facts::{DefId, Kind, NONE, UseId};

/// What a path segment denotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entity {
    /// A definition.
    Def(Gid),
    /// A definition that was found by more lenient rules than the language's.
    Guess(Gid),
    /// A generic parameter.
    Param(Gid, u16),
    /// A primitive type.
    Prim(Prim),
    /// A module: a file with scope 0, or an inline module.
    Module(u32, ScopeId),
    /// `Self` in a scope.
    SelfType(u32, ScopeId),
    /// A type.
    Type(Ty),
}

impl Entity {
    /// Returns the definition, if it is one.
    pub fn definition(&self) -> Option<Gid> {
        match self {
            Self::Def(gid) | Self::Guess(gid) => Some(*gid),
            _ => None,
        }
    }
}

/// How many aliases, imports and globs are followed in a row.
const MAX_STEPS: usize = 24;

impl RustResolver {
    /// Returns what a path use denotes.
    pub fn resolve_use(&self, file: u32, id: UseId) -> Arc<[Entity]> {
        self.resolve_use_at(file, id, 0)
    }

    fn resolve_use_at(&self, file: u32, id: UseId, depth: usize) -> Arc<[Entity]> {
        if let Some(known) = self.uses.get(&(file, id)) {
            return known;
        }
        if depth > MAX_STEPS {
            return Arc::new([]);
        }
        let found: Arc<[Entity]> = match self.code(file).links.get(id as usize).copied() {
            Some(Link::Path { base, scope, ns }) => {
                let name = self.facts(file).name(self.facts(file).uses[id as usize].name);
                let spaces: &[Ns] = match ns {
                    Ns::Argument => &[Ns::Value, Ns::Type, Ns::Macro],
                    _ => &[ns],
                };
                let mut found: Vec<Entity> = Vec::new();
                for &ns in spaces {
                    let next = self.resolve_segment(file, base, scope, name, ns, depth + 1);
                    // What the tree says comes before what the library offers everywhere.
                    let own = |e: &Entity| e.definition().is_none_or(|gid| gid.file < self.external);
                    if found.is_empty() || (next.iter().any(own) && !found.iter().any(own)) {
                        found = next;
                    }
                }
                found.into()
            }
            _ => Arc::new([]),
        };
        // An answer from deep inside a chain of imports may be cut short there: only whole ones are kept.
        if depth == 0 {
            self.uses.set((file, id), Arc::clone(&found));
        }
        found
    }

    /// Looks a path's segment up in one namespace.
    fn resolve_segment(&self, file: u32, base: Base, scope: ScopeId, name: &str, ns: Ns, depth: usize) -> Vec<Entity> {
        if base == Base::Lexical {
            return self.lexical(file, scope, name, ns, depth);
        }
        let mut found: Vec<Entity> = Vec::new();
        for entity in self.resolve_base(file, base, scope, depth) {
            for inner in self.under(&entity, name, ns, depth) {
                if !found.contains(&inner) {
                    found.push(inner);
                }
            }
        }
        found
    }

    /// Returns what the base of a path denotes.
    pub fn resolve_base(&self, file: u32, base: Base, scope: ScopeId, depth: usize) -> Vec<Entity> {
        match base {
            Base::Lexical => Vec::new(),
            Base::Use(id) => self.resolve_use_at(file, id, depth).to_vec(),
            Base::Crate => vec![Entity::Module(self.modules.homes[file as usize].root, 0)],
            Base::Module(up) => {
                let mut at = self.module_of(file, scope);
                for _ in 0..up {
                    match self.outer_module(at) {
                        Some(outer) => at = outer,
                        None => return Vec::new(),
                    }
                }
                vec![Entity::Module(at.0, at.1)]
            }
            Base::SelfType => vec![Entity::SelfType(file, scope)],
            Base::Root => Vec::new(),
            Base::Type(ty) => vec![Entity::Type(self.lower_type(file, ty))],
        }
    }

    /// Returns the module around a scope.
    pub fn module_of(&self, file: u32, scope: ScopeId) -> (u32, ScopeId) {
        (
            file,
            super::modules::inline_path(self.code(file), self.facts(file), scope).1,
        )
    }

    fn outer_module(&self, (file, scope): (u32, ScopeId)) -> Option<(u32, ScopeId)> {
        let parent = self.code(file).scopes.get(scope as usize)?.parent;
        if parent != NONE {
            return Some(self.module_of(file, parent));
        }
        self.modules.homes[file as usize].parent
    }

    /// Looks a name up in the scopes around.
    fn lexical(&self, file: u32, scope: ScopeId, name: &str, ns: Ns, depth: usize) -> Vec<Entity> {
        let mut at = scope;
        while let Some(entry) = self.code(file).scopes.get(at as usize) {
            match entry.kind {
                ScopeKind::Item(def) => {
                    let gid = Gid { file, def };
                    if let Some(generics) = &self.item(gid).generics
                        && let Some(index) = generics
                            .params
                            .iter()
                            .position(|p| self.facts(file).name(p.name) == name)
                    {
                        let constant = generics.params[index].constant;
                        if constant || matches!(ns, Ns::Type | Ns::Any) {
                            return if constant && ns == Ns::Value {
                                Vec::new()
                            } else {
                                vec![Entity::Param(gid, index as u16)]
                            };
                        }
                    }
                }
                ScopeKind::Block | ScopeKind::File | ScopeKind::Module(_) => {
                    let found = self.in_scope(file, at, name, ns, false, depth);
                    if !found.is_empty() {
                        return found;
                    }
                    if entry.kind != ScopeKind::Block {
                        break;
                    }
                }
            }
            at = entry.parent;
        }
        if ns == Ns::Macro {
            return self.macro_named(file, name);
        }
        if matches!(ns, Ns::Type | Ns::Any) {
            if let Some(roots) = self.modules.crates.get(name) {
                return roots.iter().map(|&root| Entity::Module(root, 0)).collect();
            }
            if let Some(prim) = Prim::named(name) {
                return vec![Entity::Prim(prim)];
            }
        }
        // The prelude of the standard library.
        if (file as usize) < self.external as usize {
            return self.in_scope(self.external, 0, name, ns, true, depth);
        }
        Vec::new()
    }

    /// Returns macros of a name, nearest first: textual scope is not followed, so all of one crate count as visible.
    fn macro_named(&self, file: u32, name: &str) -> Vec<Entity> {
        let macros = self.macros.get_or_init(|| {
            let mut all: HashMap<Box<str>, Vec<Gid>> = HashMap::new();
            for file in 0..self.files.len() as u32 {
                for (def, entry) in self.facts(file).defs.iter().enumerate() {
                    if entry.kind == Kind::Macro {
                        let gid = Gid {
                            file,
                            def: def as DefId,
                        };
                        all.entry(self.name(gid).into()).or_default().push(gid);
                    }
                }
            }
            all
        });
        let Some(all) = macros.get(name) else { return Vec::new() };
        let home = |gid: &&Gid| self.modules.homes[gid.file as usize].root == self.modules.homes[file as usize].root;
        let own: Vec<Gid> = all.iter().filter(|gid| gid.file == file).copied().collect();
        let near: Vec<Gid> = if own.is_empty() {
            all.iter().filter(home).copied().collect()
        } else {
            own
        };
        let near = if near.is_empty() { all.clone() } else { near };
        near.into_iter().map(Entity::Def).collect()
    }

    /// Returns the names declared in a scope.
    fn declared(&self, file: u32, scope: ScopeId) -> Arc<HashMap<Box<str>, Vec<DefId>>> {
        if let Some(known) = self.scopes.get(&(file, scope)) {
            return known;
        }
        let mut names: HashMap<Box<str>, Vec<DefId>> = HashMap::new();
        if let Some(entry) = self.code(file).scopes.get(scope as usize) {
            for &def in &entry.items {
                if self.facts(file).defs[def as usize].kind != Kind::Impl {
                    names
                        .entry(self.facts(file).def_name(def).into())
                        .or_default()
                        .push(def);
                }
            }
        }
        let names = Arc::new(names);
        self.scopes.set((file, scope), Arc::clone(&names));
        names
    }

    /// Looks a name up among a scope's items and imports.
    fn in_scope(&self, file: u32, scope: ScopeId, name: &str, ns: Ns, outside: bool, depth: usize) -> Vec<Entity> {
        if depth > MAX_STEPS {
            return Vec::new();
        }
        let mut found: Vec<Entity> = Vec::new();
        if let Some(defs) = self.declared(file, scope).get(name) {
            for &def in defs {
                let gid = Gid { file, def };
                if self.in_namespace(gid, ns) {
                    found.push(Entity::Def(gid));
                }
            }
        }
        // A wide namespace looks on: `use a::b` may mean a module and a function.
        if !found.is_empty() && ns != Ns::Any {
            return found;
        }
        let Some(entry) = self.code(file).scopes.get(scope as usize) else {
            return found;
        };
        let alias = self.facts(file).name_id(name);
        let named = |import: &&Import| !import.glob && Some(import.alias) == alias;
        for import in entry.imports.iter().filter(named) {
            for entity in self.resolve_import(file, import, depth + 1) {
                if self.entity_in(&entity, ns) && !found.contains(&entity) {
                    found.push(entity);
                }
            }
        }
        if !found.is_empty() {
            return found;
        }
        for import in entry
            .imports
            .iter()
            .filter(|import| import.glob && (import.public || !outside || file < self.external))
        {
            for base in self.resolve_import(file, import, depth + 1) {
                // A glob of the module itself adds nothing.
                if base == Entity::Module(file, scope) {
                    continue;
                }
                for entity in self.under_glob(&base, name, ns, depth + 4) {
                    if !found.contains(&entity) {
                        found.push(entity);
                    }
                }
            }
        }
        found
    }

    fn entity_in(&self, entity: &Entity, ns: Ns) -> bool {
        match entity {
            Entity::Def(gid) | Entity::Guess(gid) => self.in_namespace(*gid, ns),
            Entity::Module(..) | Entity::Param(..) | Entity::Prim(_) | Entity::SelfType(..) | Entity::Type(_) => {
                matches!(ns, Ns::Type | Ns::Any)
            }
        }
    }

    fn resolve_import(&self, file: u32, import: &Import, depth: usize) -> Vec<Entity> {
        match import.base {
            Base::Use(id) => self.resolve_use_at(file, id, depth).to_vec(),
            base => {
                let scope = self.scope_of_import(file, import);
                self.resolve_base(file, base, scope, depth)
            }
        }
    }

    fn scope_of_import(&self, file: u32, import: &Import) -> ScopeId {
        let scopes = &self.code(file).scopes;
        scopes
            .iter()
            .position(|scope| scope.imports.iter().any(|i| std::ptr::eq(i, import)))
            .unwrap_or(0) as ScopeId
    }

    fn under_glob(&self, base: &Entity, name: &str, ns: Ns, depth: usize) -> Vec<Entity> {
        match self.as_module(base) {
            Some((file, scope)) => self.in_scope(file, scope, name, ns, true, depth),
            None => match base.definition() {
                Some(gid) if self.def(gid).kind == Kind::Enum => self
                    .inside(gid, name, |kind| kind == Kind::EnumMember)
                    .into_iter()
                    .filter(|gid| self.in_namespace(*gid, ns))
                    .map(Entity::Def)
                    .collect(),
                _ => Vec::new(),
            },
        }
    }

    /// Returns the module that an entity is.
    pub fn as_module(&self, entity: &Entity) -> Option<(u32, ScopeId)> {
        match entity {
            Entity::Module(file, scope) => Some((*file, *scope)),
            Entity::Def(gid) | Entity::Guess(gid) => match self.item(*gid).kind {
                ItemKind::Module { inline: true, .. } => Some((gid.file, self.item(*gid).inner)),
                ItemKind::Module { inline: false, .. } => {
                    self.modules.files.get(&(gid.file, gid.def)).map(|&file| (file, 0))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Looks a name up in what a path's base denotes.
    fn under(&self, base: &Entity, name: &str, ns: Ns, depth: usize) -> Vec<Entity> {
        if let Some((file, scope)) = self.as_module(base) {
            let found = self.in_scope(file, scope, name, ns, true, depth);
            if found.is_empty() && matches!(ns, Ns::Macro | Ns::Any) && scope == 0 {
                // `crate::name!` reaches every macro that is exported from anywhere in the crate.
                return self.macro_named(file, name);
            }
            return found;
        }
        if let Some(gid) = base.definition() {
            match self.def(gid).kind {
                Kind::Enum => {
                    let variants = self.inside(gid, name, |kind| kind == Kind::EnumMember);
                    if !variants.is_empty() {
                        return variants.into_iter().map(Entity::Def).collect();
                    }
                }
                Kind::Trait => {
                    let found = self.trait_member(gid, name, ns, 0);
                    if !found.is_empty() {
                        return found.into_iter().map(Entity::Def).collect();
                    }
                    return Vec::new();
                }
                _ => {}
            }
        }
        let ty = self.entity_type(base, &[]);
        if let Ty::Adt(gid, _) = &ty
            && self.def(*gid).kind == Kind::Enum
        {
            let variants = self.inside(*gid, name, |kind| kind == Kind::EnumMember);
            if !variants.is_empty() {
                return variants.into_iter().map(Entity::Def).collect();
            }
        }
        let mut members = self.associated(&ty, name, ns);
        if ns == Ns::Type {
            // What a path names is the trait's associated type; what it stands for is another question.
            let declared = |gid: Gid| {
                let container = self.container(gid).filter(|c| self.def(*c).kind == Kind::Impl)?;
                let (of, _) = self.impl_info(container).of.clone()?;
                self.trait_member(of, name, ns, 0).into_iter().next()
            };
            for member in &mut members {
                if let Some(gid) = declared(member.gid) {
                    member.gid = gid;
                }
            }
            members.sort_by_key(|member| member.gid);
            members.dedup_by_key(|member| member.gid);
        }
        let guess = members.len() > 1;
        members
            .into_iter()
            .map(|m| {
                if guess {
                    Entity::Guess(m.gid)
                } else {
                    Entity::Def(m.gid)
                }
            })
            .collect()
    }

    /// Returns a member of a trait or of its supertraits.
    pub fn trait_member(&self, of: Gid, name: &str, ns: Ns, depth: usize) -> Vec<Gid> {
        let own: Vec<Gid> = self.inside(of, name, |kind| match ns {
            Ns::Type => kind == Kind::AssociatedType,
            Ns::Value => kind != Kind::AssociatedType,
            _ => true,
        });
        if !own.is_empty() || depth > 6 {
            return own;
        }
        for bound in self.supertraits(of) {
            if let Bound::Trait { of, .. } = bound {
                let found = self.trait_member(of, name, ns, depth + 1);
                if !found.is_empty() {
                    return found;
                }
            }
        }
        Vec::new()
    }

    /// Returns the type that an entity denotes, with the type arguments given for it.
    pub fn entity_type(&self, entity: &Entity, args: &[Ty]) -> Ty {
        match entity {
            Entity::Prim(prim) => Ty::Prim(*prim),
            Entity::Param(owner, index) => Ty::Param(*owner, *index),
            Entity::SelfType(file, scope) => self.self_type(*file, *scope),
            Entity::Type(ty) => ty.clone(),
            Entity::Module(..) => Ty::Unknown,
            Entity::Def(gid) | Entity::Guess(gid) => match self.def(*gid).kind {
                Kind::Struct | Kind::Enum | Kind::Union => Ty::Adt(*gid, self.fill(*gid, args)),
                Kind::EnumMember => match self.container(*gid) {
                    Some(of) => Ty::Adt(of, self.fill(of, args)),
                    None => Ty::Unknown,
                },
                Kind::TypeAlias => {
                    let ItemKind::Alias { ty, .. } = self.item(*gid).kind else {
                        return Ty::Unknown;
                    };
                    let filled = self.fill(*gid, args);
                    let mut subst = Subst::default();
                    for (index, arg) in filled.iter().enumerate() {
                        subst.set(*gid, index as u16, arg.clone());
                    }
                    self.lower_type(gid.file, ty).substitute(&subst)
                }
                Kind::Trait => Ty::Bounded(Arc::new([Bound::Trait {
                    of: *gid,
                    args: args.iter().cloned().collect(),
                    bindings: Arc::new([]),
                }])),
                _ => Ty::Unknown,
            },
        }
    }

    /// Completes type arguments with defaults, else with the unknown.
    pub fn fill(&self, gid: Gid, args: &[Ty]) -> Arc<[Ty]> {
        let Some(generics) = &self.item(gid).generics else {
            return Arc::new([]);
        };
        generics
            .params
            .iter()
            .enumerate()
            .map(|(index, param)| match args.get(index) {
                Some(ty) => ty.clone(),
                None if param.default != NONE && !args.is_empty() => self.lower_type(gid.file, param.default),
                None => Ty::Unknown,
            })
            .collect()
    }

    /// Returns `Self` in a scope.
    pub fn self_type(&self, file: u32, scope: ScopeId) -> Ty {
        let mut at = scope;
        while let Some(entry) = self.code(file).scopes.get(at as usize) {
            if let ScopeKind::Item(def) = entry.kind {
                let gid = Gid { file, def };
                match (&self.item(gid).kind, self.def(gid).kind) {
                    (ItemKind::Impl { .. }, _) => return self.impl_info(gid).ty.clone(),
                    (ItemKind::Trait { .. }, _) => return Ty::SelfOf(gid),
                    (_, Kind::Struct | Kind::Enum | Kind::Union) => {
                        let count = self.item(gid).generics.as_ref().map_or(0, |g| g.params.len());
                        return Ty::Adt(gid, (0..count).map(|i| Ty::Param(gid, i as u16)).collect());
                    }
                    _ => {}
                }
            }
            at = entry.parent;
        }
        Ty::Unknown
    }

    /// Returns a type as it is written.
    pub fn lower_type(&self, file: u32, id: u32) -> Ty {
        self.lower_type_at(file, id, 0)
    }

    fn lower_type_at(&self, file: u32, id: u32, depth: usize) -> Ty {
        let Some(_level) = Level::enter().filter(|_| depth <= MAX_STEPS) else {
            return Ty::Unknown;
        };
        let lower = |id: u32| self.lower_type_at(file, id, depth + 1);
        let optional = |id: u32| if id == NONE { Ty::Tuple(Arc::new([])) } else { lower(id) };
        match self.code(file).types.get(id as usize) {
            None | Some(TypeRef::Unknown | TypeRef::Binding { .. }) => Ty::Unknown,
            Some(TypeRef::Path(id)) => self.path_type(file, *id, depth + 1),
            Some(TypeRef::SelfType(scope)) => self.self_type(file, *scope),
            Some(TypeRef::Prim(prim)) => Ty::Prim(*prim),
            Some(TypeRef::Ref(inner) | TypeRef::RefMut(inner)) => lower(*inner).reference(),
            Some(TypeRef::Ptr(inner)) => Ty::Ptr(Arc::new(lower(*inner))),
            Some(TypeRef::Slice(inner)) => Ty::Slice(Arc::new(lower(*inner))),
            Some(TypeRef::Array(inner)) => Ty::Array(Arc::new(lower(*inner))),
            Some(TypeRef::Tuple(all)) => Ty::Tuple(all.iter().map(|&ty| lower(ty)).collect()),
            Some(TypeRef::Never) => Ty::Never,
            Some(TypeRef::Fn { params, ret }) => {
                Ty::FnPointer(params.iter().map(|&ty| lower(ty)).collect(), Arc::new(optional(*ret)))
            }
            Some(TypeRef::FnTrait { .. } | TypeRef::Bounds(_)) => {
                Ty::Bounded(self.lower_bounds(file, &[id], depth + 1).into())
            }
            Some(TypeRef::Qualified { ty, of }) => {
                let ty = lower(*ty);
                if *of == NONE {
                    return ty;
                }
                // `<T as Trait>::Name` looks only at that trait.
                match self.lower_bounds(file, &[*of], depth + 1).first() {
                    Some(Bound::Trait { of, .. }) => Ty::Assoc(Arc::new(ty), Some(*of), "".into()),
                    _ => ty,
                }
            }
        }
    }

    /// Returns the type that a path use denotes, with its generic arguments.
    fn path_type(&self, file: u32, id: UseId, depth: usize) -> Ty {
        let args: Vec<Ty> = self
            .code(file)
            .args(id)
            .iter()
            .filter(|&&arg| !matches!(self.code(file).types[arg as usize], TypeRef::Binding { .. }))
            .map(|&arg| self.lower_type_at(file, arg, depth + 1))
            .collect();
        let entities = self.resolve_use(file, id);
        if let Some(gid) = entities.first().and_then(Entity::definition)
            && self.def(gid).kind == Kind::AssociatedType
            && let Some(Link::Path { base, scope, .. }) = self.code(file).links.get(id as usize)
        {
            let name: Arc<str> = self.name(gid).into();
            let of = self.container(gid).filter(|c| self.def(*c).kind == Kind::Trait);
            let bases = self.resolve_base(file, *base, *scope, depth + 1);
            let base = match bases.first() {
                Some(Entity::Type(Ty::Assoc(inner, of, empty))) if empty.is_empty() => {
                    return self.normalize(&Ty::Assoc(Arc::clone(inner), *of, name));
                }
                Some(Entity::Def(of)) if self.def(*of).kind == Kind::AssociatedType => match base {
                    // `T::A::B`.
                    Base::Use(inner) => self.path_type(file, *inner, depth + 1),
                    _ => Ty::Unknown,
                },
                Some(entity) => self.entity_type(entity, &[]),
                None => Ty::Unknown,
            };
            if base.is_unknown() {
                return Ty::Unknown;
            }
            return self.normalize(&Ty::Assoc(Arc::new(base), of, name));
        }
        // Generic arguments of an enum may stand before the variant.
        if let Some(Entity::Def(gid)) = entities.first()
            && self.def(*gid).kind == Kind::EnumMember
            && let Some(Link::Path {
                base: Base::Use(of), ..
            }) = self.code(file).links.get(id as usize)
            && args.is_empty()
        {
            let of = self.path_type(file, *of, depth + 1);
            if matches!(&of, Ty::Adt(..)) {
                return of;
            }
        }
        entities
            .first()
            .map_or(Ty::Unknown, |entity| self.entity_type(entity, &args))
    }

    /// Returns bounds as they are written.
    pub fn lower_bounds(&self, file: u32, ids: &[u32], depth: usize) -> Vec<Bound> {
        let mut all = Vec::new();
        if depth > MAX_STEPS {
            return all;
        }
        for &id in ids {
            match self.code(file).types.get(id as usize) {
                Some(TypeRef::FnTrait { params, ret }) => {
                    let params = params
                        .iter()
                        .map(|&ty| self.lower_type_at(file, ty, depth + 1))
                        .collect();
                    let ret = if *ret == NONE {
                        Ty::Tuple(Arc::new([]))
                    } else {
                        self.lower_type_at(file, *ret, depth + 1)
                    };
                    all.push(Bound::Fn(params, Arc::new(ret)));
                }
                Some(TypeRef::Bounds(inner)) => all.extend(self.lower_bounds(file, inner, depth + 1)),
                Some(TypeRef::Path(id)) => {
                    let Some(of) = self
                        .resolve_use(file, *id)
                        .iter()
                        .filter_map(Entity::definition)
                        .find(|gid| self.def(*gid).kind == Kind::Trait)
                    else {
                        continue;
                    };
                    let (mut args, mut bindings) = (Vec::new(), Vec::new());
                    for &arg in self.code(file).args(*id) {
                        match self.code(file).types.get(arg as usize) {
                            Some(TypeRef::Binding { name, ty }) => {
                                let name: Arc<str> = self.facts(file).name(*name).into();
                                bindings.push((name, self.lower_type_at(file, *ty, depth + 1)));
                            }
                            _ => args.push(self.lower_type_at(file, arg, depth + 1)),
                        }
                    }
                    all.push(Bound::Trait {
                        of,
                        args: args.into(),
                        bindings: bindings.into(),
                    });
                }
                _ => {}
            }
        }
        all
    }
}
