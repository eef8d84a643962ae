//! Looks names up through scopes, packages, imports and types.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use zero_contracts::find::Confidence;

use super::code::{DeclaredCode, Expr, ExprId, Item, Link, ScopeId, Want};
use super::space::{PlaceId, ROOT, Space, code};
use super::types::Ty;
use crate::facts::{Def, DefId, FileFacts, Kind, NONE, UseId};
use crate::program::{FileId, ImportEdge, ProgramFile, Resolver, Target};

/// A definition of the program.
pub type Gid = (FileId, DefId);

/// Where an import leads.
pub enum Leads {
    /// To files.
    Files(Vec<FileId>),
    /// To a package, type or member, part by part from the root.
    Place(Vec<String>),
}

/// What a language says about packages and files.
pub trait Places: Send + Sync {
    /// Returns the place of a file's package, part by part.
    fn package(&self, file: FileId) -> Vec<String>;

    /// Returns the module path shown in qualified names.
    fn path(&self, file: FileId) -> Vec<String>;

    /// Returns where an import of a file leads; none if that is outside the tree.
    fn leads(&self, file: FileId, what: &str) -> Option<Leads>;

    /// Returns the files that a file includes, itself and through others. None where packages do that work.
    fn included(&self, file: FileId) -> Option<Arc<HashSet<FileId>>>;

    /// Tells whether libraries have members of that name, too: then a member of an unknown value tells nothing.
    fn is_common(&self, name: &str) -> bool;
}

/// Questions nested deeper than this have no answer.
pub(super) const MAX_DEPTH: usize = 40;

/// What a name was found to be.
pub(super) enum Seen {
    /// A local variable with its value.
    Local(ExprId),
    /// Something brought in under the name.
    Brought(ExprId),
    /// A place with definitions that can be seen, or a package.
    Place(PlaceId),
    /// Something of a library.
    Outside,
}

/// The resolver.
pub struct DeclaredResolver<P> {
    pub(super) files: Arc<[ProgramFile]>,
    pub(super) places: P,
    pub(super) space: Space,
    /// Where each import of each file leads, as far as it has been asked.
    leads: Vec<OnceLock<Vec<Option<Leads>>>>,
}

impl<P: Places> DeclaredResolver<P> {
    /// Makes a resolver.
    pub fn new(files: Arc<[ProgramFile]>, places: P) -> Self {
        let space = Space::new(&files, |file| places.package(file));
        let leads = files.iter().map(|_| OnceLock::new()).collect();
        Self {
            files,
            places,
            space,
            leads,
        }
    }

    pub(super) fn facts(&self, file: FileId) -> &FileFacts {
        &self.files[file as usize].facts
    }

    pub(super) fn code(&self, file: FileId) -> Option<&DeclaredCode> {
        code(self.facts(file))
    }

    pub(super) fn def(&self, gid: Gid) -> &Def {
        &self.facts(gid.0).defs[gid.1 as usize]
    }

    pub(super) fn item(&self, gid: Gid) -> Option<&Item> {
        self.code(gid.0)?.items.get(gid.1 as usize)
    }

    fn lead(&self, file: FileId, import: u32) -> Option<&Leads> {
        let leads = self.leads[file as usize].get_or_init(|| {
            let imports = self.code(file).map_or(&[][..], |code| &code.imports);
            let what = |import: &super::code::Import| self.places.leads(file, self.facts(file).name(import.what));
            imports.iter().map(what).collect()
        });
        leads.get(import as usize)?.as_ref()
    }

    pub(super) fn import_place(&self, file: FileId, import: u32) -> Option<PlaceId> {
        match self.lead(file, import)? {
            Leads::Place(parts) => self.space.path(parts),
            Leads::Files(_) => None,
        }
    }

    /// Tells whether a file sees a definition.
    pub(super) fn sees(&self, file: FileId, gid: Gid) -> bool {
        let local = self.item(gid).is_some_and(|item| item.local);
        !local
            || gid.0 == file
            || self
                .places
                .included(file)
                .is_some_and(|included| included.contains(&gid.0))
    }

    fn seen(&self, file: FileId, place: PlaceId) -> bool {
        let defs = self.space.defs(place);
        defs.iter().any(|&gid| self.sees(file, gid)) || (defs.is_empty() && self.space.has_children(place))
    }

    /// Looks a name up from a scope outwards; `place` is where it stands, and whether a type is meant.
    pub(super) fn look_up(
        &self,
        file: FileId,
        scope: ScopeId,
        name: &str,
        place: (u32, bool),
        depth: usize,
    ) -> Option<Seen> {
        let code = self.code(file).filter(|_| depth < MAX_DEPTH)?;
        let id = self.facts(file).name_id(name)?;
        let (at, ty) = place;
        let visible = |place: PlaceId| self.seen(file, place).then_some(Seen::Place(place));
        let mut next = scope;
        while let Some(entry) = code.scopes.get(next as usize) {
            let local = entry
                .locals
                .iter()
                .rev()
                .find(|l| l.name == id && l.from <= at && (l.ty || !ty));
            if let Some(local) = local {
                return Some(Seen::Local(local.value));
            }
            if let Some((_, expr)) = entry.brought.iter().rev().find(|(n, _)| *n == id) {
                return Some(Seen::Brought(*expr));
            }
            if let Some(place) = (entry.of != NONE).then(|| self.space.of((file, entry.of))).flatten() {
                // Written outside its type, a member still sees what lies around the type.
                let outside = self.def((file, entry.of)).kind == Kind::Impl;
                let count = if outside { usize::MAX } else { 1 };
                for place in self.space.up(place).take(count).filter(|&p| p != ROOT) {
                    if let Some(found) = self.member(place, name, depth + 1).and_then(visible) {
                        return Some(found);
                    }
                }
            }
            for &opened in &entry.opened {
                for ty in self.types(file, opened, depth + 1) {
                    let found = ty.place().and_then(|place| self.member(place, name, depth + 1));
                    if let Some(found) = found.and_then(visible) {
                        return Some(found);
                    }
                }
            }
            next = entry.parent;
        }
        let imports = || code.imports.iter().enumerate();
        if let Some((index, _)) = imports().find(|(_, import)| import.bound == id) {
            return Some(self.import_place(file, index as u32).map_or(Seen::Outside, Seen::Place));
        }
        let package = self.space.package(file);
        if let Some(found) = self.space.child(package, name).and_then(visible) {
            return Some(found);
        }
        for (index, _) in imports().filter(|(_, import)| import.opened) {
            let place = self.import_place(file, index as u32);
            let found = place.and_then(|place| self.member(place, name, depth + 1));
            if let Some(found) = found.and_then(visible) {
                return Some(found);
            }
        }
        // A qualified name from the outermost package.
        self.space.child(ROOT, name).and_then(visible)
    }

    /// Returns the place of a member, inherited or its own.
    pub(super) fn member(&self, place: PlaceId, name: &str, depth: usize) -> Option<PlaceId> {
        if depth > MAX_DEPTH {
            return None;
        }
        let own = self.space.child(place, name);
        if own.is_some_and(|own| !self.space.defs(own).is_empty() || self.space.has_children(own)) {
            return own;
        }
        self.bases(place, depth + 1)
            .into_iter()
            .filter(|&base| base != place)
            .find_map(|base| self.member(base, name, depth + 1))
    }

    /// Returns the places of the bases of a type, and of what an alias stands for.
    pub(super) fn bases(&self, place: PlaceId, depth: usize) -> Vec<PlaceId> {
        let mut found = Vec::new();
        for &gid in self.space.defs(place) {
            let Some(item) = self.item(gid) else { continue };
            let alias = (self.def(gid).kind == Kind::TypeAlias).then_some(item.value);
            for expr in item.bases.iter().copied().chain(alias) {
                found.extend(self.types(gid.0, expr, depth + 1).iter().filter_map(Ty::place));
            }
        }
        found
    }

    /// Chooses the definitions of a place that a use means.
    fn choose(&self, file: FileId, place: PlaceId, want: Want) -> Vec<(Gid, Confidence)> {
        let all = self.space.defs(place).iter().copied();
        let mut found: Vec<Gid> = all.filter(|&gid| self.sees(file, gid)).collect();
        let prefer = |found: &mut Vec<Gid>, fits: &dyn Fn(Gid) -> bool| {
            if found.iter().any(|&gid| fits(gid)) {
                found.retain(|&gid| fits(gid));
            }
        };
        match want {
            Want::Call(arguments) => {
                let holds = |gid: Gid| self.def(gid).kind.is_callable();
                let fits = |gid: Gid| {
                    self.item(gid)
                        .is_none_or(|item| item.least <= arguments && arguments <= item.most)
                };
                prefer(&mut found, &|gid| holds(gid) && fits(gid));
                prefer(&mut found, &|gid| holds(gid));
            }
            Want::Type => prefer(&mut found, &|gid| self.def(gid).kind.is_type()),
            Want::Value => prefer(&mut found, &|gid| !self.def(gid).kind.is_type()),
        }
        if let Some(included) = self.places.included(file) {
            self.nearest(file, &included, &mut found);
        }
        let mut signatures: Vec<u32> = Vec::new();
        let mut bodies = 0;
        for &gid in &found {
            let signature = self.item(gid).map_or(NONE, |item| item.signature);
            let hash = match signature {
                NONE => 0,
                id => crate::facts::name_hash(self.facts(gid.0).name(id)),
            };
            if !signatures.contains(&hash) {
                signatures.push(hash);
            }
            bodies += usize::from(self.item(gid).is_some_and(|item| item.body));
        }
        let conditional = found.iter().all(|&gid| self.def(gid).conditional);
        let one = signatures.len() < 2 && (bodies < 2 || conditional);
        let sure = if one { Confidence::Exact } else { Confidence::Scoped };
        // What has a body is what runs; a declaration of it comes after.
        found.sort_by_key(|&gid| !self.item(gid).is_some_and(|item| item.body));
        let mut found: Vec<(Gid, Confidence)> = found.into_iter().map(|gid| (gid, sure)).collect();
        if let (Want::Call(arguments), [(only, _)]) = (want, &found[..])
            && self.def(*only).kind.is_type()
        {
            found.splice(0..0, self.constructors(*only, arguments));
        }
        found
    }

    /// Returns the constructors of a type that take so many arguments.
    fn constructors(&self, of: Gid, arguments: u8) -> Vec<(Gid, Confidence)> {
        let place = self
            .space
            .of(of)
            .and_then(|place| self.space.child(place, super::space::CONSTRUCTOR));
        let all = place.map_or(&[][..], |place| self.space.defs(place)).iter().copied();
        let mut found: Vec<Gid> = all
            .filter(|&gid| self.def(gid).kind == Kind::Constructor)
            .filter(|&gid| {
                self.item(gid)
                    .is_some_and(|item| item.least <= arguments && arguments <= item.most)
            })
            .collect();
        found.sort_by_key(|&gid| !self.item(gid).is_some_and(|item| item.body));
        let bodies = found
            .iter()
            .filter(|&&gid| self.item(gid).is_some_and(|i| i.body))
            .count();
        let sure = if bodies < 2 {
            Confidence::Exact
        } else {
            Confidence::Scoped
        };
        found.into_iter().map(|gid| (gid, sure)).collect()
    }

    /// Keeps the definitions that a file is linked with: its own, those it includes, those that share a header with it.
    fn nearest(&self, file: FileId, included: &HashSet<FileId>, found: &mut Vec<Gid>) {
        let headers: HashSet<FileId> = found
            .iter()
            .map(|gid| gid.0)
            .filter(|other| *other == file || included.contains(other))
            .collect();
        let near = |gid: Gid| {
            if gid.0 == file {
                2
            } else if headers.contains(&gid.0)
                || self
                    .places
                    .included(gid.0)
                    .is_some_and(|theirs| headers.iter().any(|header| theirs.contains(header)))
            {
                1
            } else {
                0
            }
        };
        let has_body = |gid: Gid| self.item(gid).is_some_and(|item| item.body);
        let best = found.iter().filter(|&&gid| has_body(gid)).map(|&gid| near(gid)).max();
        let any = found.iter().map(|&gid| near(gid)).max().unwrap_or(0);
        found.retain(|&gid| {
            if has_body(gid) {
                Some(near(gid)) == best && (near(gid) > 0 || any == 0)
            } else {
                near(gid) > 0 || any == 0
            }
        });
    }

    fn targets(&self, file: FileId, id: UseId) -> Vec<(Gid, Confidence)> {
        let Some(link) = self.code(file).and_then(|code| code.links.get(id as usize)).copied() else {
            return Vec::new();
        };
        let site = self.facts(file).uses[id as usize];
        let name = self.facts(file).name(site.name);
        match link {
            Link::Name { scope, want } => match self.look_up(file, scope, name, (site.at, want == Want::Type), 0) {
                Some(Seen::Place(place)) => self.choose(file, place, want),
                Some(Seen::Brought(expr)) => {
                    let places: Vec<PlaceId> = self.places_of(file, expr, 0);
                    places
                        .into_iter()
                        .flat_map(|place| self.choose(file, place, want))
                        .collect()
                }
                _ => Vec::new(),
            },
            Link::Import(index) => {
                let place = self.import_place(file, index);
                place.map_or_else(Vec::new, |place| {
                    let all = self.space.defs(place).iter();
                    all.map(|&gid| (gid, Confidence::Exact)).collect()
                })
            }
            Link::Member { of, want } => {
                let types = self.types(file, of, 0);
                let mut found: Vec<PlaceId> = Vec::new();
                for place in types.iter().filter_map(Ty::place) {
                    if let Some(member) = self.member(place, name, 0).filter(|member| !found.contains(member)) {
                        found.push(member);
                    }
                }
                if types.is_empty() {
                    return self.only_named(file, name, want);
                }
                let sure = found.len() == 1;
                let mut all: Vec<(Gid, Confidence)> = Vec::new();
                for place in found {
                    all.extend(self.choose(file, place, want));
                }
                if !sure {
                    for (_, confidence) in &mut all {
                        *confidence = Confidence::Scoped;
                    }
                }
                all
            }
        }
    }

    /// Returns the places that a name or member written out stands for.
    pub(super) fn places_of(&self, file: FileId, expr: ExprId, depth: usize) -> Vec<PlaceId> {
        let Some(code) = self.code(file).filter(|_| depth < MAX_DEPTH) else {
            return Vec::new();
        };
        match code.exprs.get(expr as usize) {
            Some(Expr::Name { scope, name, at, ty }) => {
                match self.look_up(file, *scope, self.facts(file).name(*name), (*at, *ty), depth + 1) {
                    Some(Seen::Place(place)) => vec![place],
                    // A name that brings in itself: what lies outside the scope.
                    Some(Seen::Brought(other)) if other != expr => self.places_of(file, other, depth + 1),
                    _ => Vec::new(),
                }
            }
            Some(Expr::Member { of, name }) => {
                let name = self.facts(file).name(*name);
                let types = self.types(file, *of, depth + 1);
                let places = types.iter().filter_map(Ty::place);
                places.filter_map(|place| self.member(place, name, depth + 1)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the members of a name, if one type alone has one: nothing is known of the value.
    fn only_named(&self, file: FileId, name: &str, want: Want) -> Vec<(Gid, Confidence)> {
        if self.places.is_common(name) {
            return Vec::new();
        }
        let mut found: Option<PlaceId> = None;
        for other in 0..self.files.len() as FileId {
            let facts = self.facts(other);
            let Some(id) = facts.name_id(name) else { continue };
            for (def, entry) in facts.defs.iter().enumerate().filter(|(_, entry)| entry.name == id) {
                let holder = facts.defs.get(entry.container as usize);
                if !holder.is_some_and(|holder| holder.kind.is_type() || holder.kind == Kind::Impl) {
                    continue;
                }
                let place = self.space.of((other, def as DefId));
                match (found, place) {
                    (Some(known), Some(place)) if known != place => return Vec::new(),
                    (_, place) => found = place.or(found),
                }
            }
        }
        let chosen = found.map_or_else(Vec::new, |place| self.choose(file, place, want));
        chosen.into_iter().map(|(gid, _)| (gid, Confidence::Name)).collect()
    }
}

impl<P: Places> Resolver for DeclaredResolver<P> {
    fn resolve(&self, file: FileId, use_id: UseId) -> Vec<Target> {
        let mut seen = HashSet::new();
        let found = self
            .targets(file, use_id)
            .into_iter()
            .filter(|(gid, _)| seen.insert(*gid));
        let mut found: Vec<Target> = found
            .map(|((file, def), confidence)| Target { file, def, confidence })
            .collect();
        found.sort_by_key(|target| target.confidence);
        found
    }

    fn module_path(&self, file: FileId) -> Vec<String> {
        self.places.path(file)
    }

    fn imports(&self, file: FileId) -> Vec<ImportEdge> {
        let Some(code) = self.code(file) else { return Vec::new() };
        let mut edges: Vec<ImportEdge> = Vec::new();
        for (index, import) in code.imports.iter().enumerate() {
            let mut edge = ImportEdge {
                text: self.facts(file).name(import.what).to_owned(),
                at: import.at,
                end: import.end,
                files: Vec::new(),
                targets: Vec::new(),
            };
            match self.lead(file, index as u32) {
                Some(Leads::Files(files)) => edge.files.clone_from(files),
                Some(Leads::Place(parts)) => {
                    let place = self.space.path(parts);
                    let defs = place.map_or(&[][..], |place| self.space.defs(place));
                    edge.files.extend(defs.iter().map(|gid| gid.0));
                    if place.is_some() && defs.is_empty() {
                        let all = 0..self.files.len() as FileId;
                        edge.files
                            .extend(all.filter(|&other| Some(self.space.package(other)) == place));
                    }
                    edge.targets.extend(defs.iter().map(|&(file, def)| Target {
                        file,
                        def,
                        confidence: Confidence::Exact,
                    }));
                }
                None => {}
            }
            edge.files.sort_unstable();
            edge.files.dedup();
            edges.push(edge);
        }
        edges.sort_by_key(|edge| (edge.at, edge.end));
        edges
    }

    fn aliases(&self, _name: &str) -> Vec<String> {
        // Imports of this family keep the names of definitions; an alias of a type is a definition of its own.
        Vec::new()
    }

    fn overridden(&self, file: FileId, def: DefId) -> Vec<Target> {
        let name = self.facts(file).def_name(def);
        let Some(place) = self.space.of((file, def)) else {
            return Vec::new();
        };
        let Some(holder) = self.space.up(place).nth(1) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for base in self.bases(holder, 0) {
            if let Some(member) = self.member(base, name, 0).filter(|&member| member != place) {
                found.extend(self.space.defs(member).iter().map(|&(file, def)| Target {
                    file,
                    def,
                    confidence: Confidence::Exact,
                }));
            }
        }
        found
    }
}
