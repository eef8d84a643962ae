//! What values are, as far as declarations tell.

use std::cell::RefCell;
use std::collections::HashSet;

use super::code::{Expr, ExprId};
use super::resolver::{DeclaredResolver, MAX_DEPTH, Places, Seen};
use super::space::{PlaceId, ROOT};
use crate::facts::{DefId, Kind, NONE};
use crate::program::FileId;

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ty {
    /// The type, package or namespace itself.
    Itself(PlaceId),
    /// Something of the type.
    Instance(PlaceId),
    /// A function.
    Function(PlaceId),
    /// A collection, or a pointer of a library, with what is inside.
    List(Vec<Ty>),
    /// Several results.
    Tuple(Vec<Vec<Ty>>),
    /// Something of a library.
    External,
}

impl Ty {
    /// Returns where its members are.
    pub(super) fn place(&self) -> Option<PlaceId> {
        match self {
            Self::Itself(place) | Self::Instance(place) => Some(*place),
            Self::List(inside) => match &inside[..] {
                // What a smart pointer leads to.
                [only] => only.place(),
                _ => None,
            },
            _ => None,
        }
    }

    fn made(self) -> Self {
        match self {
            Self::Itself(place) => Self::Instance(place),
            other => other,
        }
    }
}

thread_local! {
    static ACTIVE: RefCell<HashSet<(FileId, ExprId)>> = RefCell::new(HashSet::new());
}

impl<P: Places> DeclaredResolver<P> {
    /// Returns what a value may be; nothing if that is not known.
    pub(super) fn types(&self, file: FileId, expr: ExprId, depth: usize) -> Vec<Ty> {
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
        let own = |def: DefId| self.space.of((file, def));
        match entry {
            Expr::Unknown => Vec::new(),
            Expr::External => vec![Ty::External],
            Expr::Root => vec![Ty::Itself(ROOT)],
            Expr::Name { scope, name, at, ty } => {
                let name = self.facts(file).name(*name);
                match self.look_up(file, *scope, name, (*at, *ty), depth) {
                    Some(Seen::Local(value)) => self.types(file, value, depth),
                    Some(Seen::Brought(other)) if other != expr => self.types(file, other, depth),
                    Some(Seen::Place(place)) => self.of_place(place, u8::MAX, depth),
                    // Nothing in the tree declares it: a library does, or the language itself.
                    _ => vec![Ty::External],
                }
            }
            Expr::Member { of, name } => {
                let name = self.facts(file).name(*name);
                let types = self.types(file, *of, depth);
                let mut found = Vec::new();
                for ty in &types {
                    match (ty, ty.place().and_then(|place| self.member(place, name, depth))) {
                        (_, Some(member)) => found.extend(self.of_place(member, u8::MAX, depth)),
                        // What a collection's own methods give is most often what is inside.
                        (Ty::List(_), None) => found.push(ty.clone()),
                        (Ty::External, None) => found.push(Ty::External),
                        _ => {}
                    }
                }
                found
            }
            Expr::Call(callee, arguments) => {
                let mut found = Vec::new();
                for ty in self.types(file, *callee, depth) {
                    match ty {
                        Ty::Function(place) => found.extend(self.results(place, *arguments, depth)),
                        Ty::Itself(place) => found.push(Ty::Instance(place)),
                        // A component of a record, or a field that holds a function and is known by what it returns.
                        Ty::Instance(_) | Ty::List(_) | Ty::External => found.push(ty),
                        Ty::Tuple(_) => {}
                    }
                }
                found
            }
            Expr::Instance(ty) => self.types(file, *ty, depth).into_iter().map(Ty::made).collect(),
            Expr::Generic(ty, arguments) => {
                let types = self.types(file, *ty, depth);
                if types == [Ty::External]
                    && let Some(last) = arguments.last()
                {
                    let inside: Vec<Ty> = self.types(file, *last, depth).into_iter().map(Ty::made).collect();
                    return if inside.is_empty() || inside == [Ty::External] {
                        vec![Ty::External]
                    } else {
                        vec![Ty::List(inside)]
                    };
                }
                types
            }
            Expr::This(def) => own(*def).map(Ty::Instance).into_iter().collect(),
            Expr::Super(def) => own(*def)
                .map(|place| self.bases(place, depth).into_iter().map(Ty::Instance).collect())
                .unwrap_or_default(),
            Expr::Element(of) => {
                let types = self.types(file, *of, depth);
                types.into_iter().flat_map(|ty| self.elements(ty, depth)).collect()
            }
            Expr::List(of) => {
                let inside: Vec<Ty> = self.types(file, *of, depth).into_iter().map(Ty::made).collect();
                if inside.is_empty() {
                    Vec::new()
                } else {
                    vec![Ty::List(inside)]
                }
            }
            Expr::Tuple(parts) => vec![Ty::Tuple(
                parts.iter().map(|&part| self.types(file, part, depth)).collect(),
            )],
            Expr::Part(of, index) => {
                let mut found = Vec::new();
                for ty in self.types(file, *of, depth) {
                    match ty {
                        Ty::Tuple(parts) => found.extend(parts.get(usize::from(*index)).cloned().unwrap_or_default()),
                        other if *index == 0 => found.push(other),
                        Ty::External => found.push(Ty::External),
                        _ => {}
                    }
                }
                found
            }
        }
    }

    fn elements(&self, ty: Ty, depth: usize) -> Vec<Ty> {
        match ty {
            Ty::List(inside) => inside,
            Ty::External => vec![Ty::External],
            Ty::Instance(place) => {
                // A named collection.
                let aliases = self.space.defs(place).iter().copied();
                let aliases = aliases.filter(|&gid| self.def(gid).kind == Kind::TypeAlias);
                let mut found = Vec::new();
                for gid in aliases {
                    let Some(item) = self.item(gid) else { continue };
                    for ty in self.types(gid.0, item.value, depth + 1) {
                        if let Ty::List(inside) = ty {
                            found.extend(inside);
                        }
                    }
                }
                // Otherwise a pointer, which is not told from what it leads to.
                if found.is_empty() {
                    vec![Ty::Instance(place)]
                } else {
                    found
                }
            }
            _ => Vec::new(),
        }
    }

    /// Returns what the definitions of a place are as values.
    fn of_place(&self, place: PlaceId, arguments: u8, depth: usize) -> Vec<Ty> {
        let defs = self.space.defs(place);
        if defs.is_empty() {
            return vec![Ty::Itself(place)];
        }
        let kind = |wanted: &dyn Fn(Kind) -> bool| defs.iter().any(|&gid| wanted(self.def(gid).kind));
        if kind(&|kind| kind.is_type() || kind == Kind::Module) {
            return vec![Ty::Itself(place)];
        }
        if kind(&Kind::is_callable) {
            return vec![Ty::Function(place)];
        }
        self.results(place, arguments, depth)
    }

    /// Returns what variables hold and functions of so many arguments return.
    fn results(&self, place: PlaceId, arguments: u8, depth: usize) -> Vec<Ty> {
        let mut found = Vec::new();
        for &gid in self.space.defs(place) {
            let Some(item) = self.item(gid) else { continue };
            if item.signature == NONE || arguments == u8::MAX || (item.least <= arguments && arguments <= item.most) {
                found.extend(self.types(gid.0, item.value, depth + 1));
            }
        }
        found
    }
}
