//! Types of expressions, as far as declarations and calls tell.

mod calls;
mod parts;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;

use super::code::{Base, Expr, ExprId, ItemKind, Link, Ns, Part, Prim, Receiver, TypeRef};
use super::lookup::Entity;
use super::members::Member;
use super::resolver::RustResolver;
use super::ty::{Bound, Gid, Subst, Ty, merge, unify, unify_argument};
use crate::facts::{Kind, NONE, UseId};

thread_local! {
    /// Expressions whose types are being computed, and whether one of them was asked for again meanwhile.
    static ACTIVE: RefCell<(HashSet<(u32, ExprId)>, bool)> = RefCell::new((HashSet::new(), false));
    static LEVELS: Cell<usize> = const { Cell::new(0) };
}

/// One level of questions that lead to questions; too many in a row are given up, and that counts as a circle.
pub struct Level;

impl Level {
    /// Enters a level, unless there are too many.
    pub fn enter() -> Option<Self> {
        if LEVELS.get() >= MAX_LEVELS {
            ACTIVE.with_borrow_mut(|(_, met)| *met = true);
            return None;
        }
        LEVELS.set(LEVELS.get() + 1);
        Some(Self)
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        LEVELS.set(LEVELS.get() - 1);
    }
}

/// Questions in a row.
const MAX_LEVELS: usize = 120;

/// Expressions nested deeper than this have no known type.
const MAX_ACTIVE: usize = 160;

impl RustResolver {
    /// Returns the type of an expression.
    ///
    /// Types may depend on one another in circles (a local and what is put into it). An answer that met a circle depends
    /// on where the question began, so only answers that met none are kept.
    pub fn type_of(&self, file: u32, expr: ExprId) -> Ty {
        if expr == super::lower::UNKNOWN || expr == NONE {
            return Ty::Unknown;
        }
        let key = (file, expr);
        if let Some(known) = self.types.get(&key) {
            return known;
        }
        let (entered, before) = ACTIVE.with_borrow_mut(|(active, met)| {
            if active.len() >= MAX_ACTIVE || !active.insert(key) {
                *met = true;
                return (false, false);
            }
            (true, std::mem::replace(met, false))
        });
        if !entered {
            return Ty::Unknown;
        }
        let ty = self.compute(file, expr);
        let ty = if ty.depth() > 24 { Ty::Unknown } else { ty };
        let clean = ACTIVE.with_borrow_mut(|(active, met)| {
            active.remove(&key);
            let clean = !*met;
            // Outside of every circle there is nothing left to depend on.
            *met = (*met || before) && !active.is_empty();
            clean
        });
        if clean {
            self.types.set(key, ty.clone());
        }
        ty
    }

    fn compute(&self, file: u32, id: ExprId) -> Ty {
        let Some(expr) = self.code(file).exprs.get(id as usize) else {
            return Ty::Unknown;
        };
        let unit = || Ty::Tuple(Arc::new([]));
        match expr {
            Expr::Unknown => Ty::Unknown,
            Expr::Prim(prim) => Ty::Prim(*prim),
            Expr::Typed(ty) => self.normalize(&self.lower_type(file, *ty)),
            Expr::SelfValue(scope) => self.self_type(file, *scope),
            Expr::Path(path) => self.path_value(file, *path),
            Expr::Call { callee, args } => self.call(file, *callee, args),
            Expr::Method { recv, name, args } => self.method_call(file, *recv, *name, args, id),
            Expr::Field { recv, name } => self.field_type(file, *recv, self.facts(file).name(*name)),
            Expr::TupleField { recv, index } => self.tuple_field(&self.type_of(file, *recv), *index),
            Expr::Index { recv, index } => self.index(file, *recv, *index),
            Expr::Deref(inner) => {
                let ty = self.type_of(file, *inner);
                self.dereference(&ty).unwrap_or(ty)
            }
            Expr::Ref(inner) => match self.type_of(file, *inner) {
                Ty::Unknown => Ty::Unknown,
                ty => ty.reference(),
            },
            Expr::Binary { left, right } => self.binary(file, *left, *right),
            Expr::Negate(inner) => self.type_of(file, *inner),
            Expr::Try(inner) => self.unwrapped(&self.type_of(file, *inner)),
            Expr::Await(inner) => {
                let ty = self.type_of(file, *inner);
                self.bounds_of(&ty)
                    .iter()
                    .find_map(|bound| match bound {
                        Bound::Trait { bindings, .. } => bindings
                            .iter()
                            .find(|(name, _)| &**name == "Output")
                            .map(|(_, ty)| ty.clone()),
                        Bound::Fn(..) => None,
                    })
                    .unwrap_or(ty)
            }
            Expr::Choice(branches) => {
                let mut known = Ty::Unknown;
                for &branch in branches {
                    let ty = self.type_of(file, branch);
                    known = merge(&known, &ty);
                    if !known.is_vague() {
                        break;
                    }
                }
                known
            }
            Expr::Closure { .. } => Ty::Closure(file, id),
            Expr::ClosureParam { closure, index } => self.closure_param(file, *closure, *index),
            Expr::Tuple(all) if all.is_empty() => unit(),
            Expr::Tuple(all) => Ty::Tuple(all.iter().map(|&e| self.type_of(file, e)).collect()),
            Expr::Array(all) => Ty::Array(Arc::new(self.first_known(file, all))),
            Expr::Vec(all) => self.std_type("Vec", vec![self.first_known(file, all)]),
            Expr::Range(inner) => self.std_type("Range", vec![self.type_of(file, *inner)]),
            Expr::Part { of, ty, part } => self.part(file, *of, *ty, *part),
            Expr::Elem(of) => {
                let ty = self.type_of(file, *of);
                let by_reference = matches!(ty, Ty::Ref(_));
                match self.element(ty.strip()) {
                    Ty::Unknown => Ty::Unknown,
                    ty if by_reference => ty.reference(),
                    ty => ty,
                }
            }
            Expr::Item(of) => self.item_of(&self.type_of(file, *of)),
            Expr::Local { init, hints } => {
                let mut ty = self.type_of(file, *init);
                for &hint in hints {
                    if !ty.is_vague() {
                        break;
                    }
                    ty = match &self.code(file).exprs[hint as usize] {
                        Expr::Method { name, args, .. } => self.filled(file, &ty, *name, args),
                        _ => merge(&ty, &self.type_of(file, hint)),
                    };
                }
                ty
            }
        }
    }

    fn first_known(&self, file: u32, all: &[ExprId]) -> Ty {
        all.iter()
            .take(4)
            .map(|&e| self.type_of(file, e))
            .find(|ty| !ty.is_unknown())
            .unwrap_or(Ty::Unknown)
    }

    /// Makes a type of the standard library.
    fn std_type(&self, name: &str, args: Vec<Ty>) -> Ty {
        self.std(name).map_or(Ty::Unknown, |gid| Ty::Adt(gid, args.into()))
    }

    /// Returns what a local collection holds after a call that fills it.
    fn filled(&self, file: u32, ty: &Ty, name: UseId, args: &[ExprId]) -> Ty {
        let Ty::Adt(gid, known) = ty else { return ty.clone() };
        let method = self.facts(file).name(self.facts(file).uses[name as usize].name);
        let Some(member) = self.method(ty, method).into_iter().next() else {
            return ty.clone();
        };
        let ItemKind::Fn { params, .. } = &self.item(member.gid).kind else {
            return ty.clone();
        };
        let Some(container) = self.container(member.gid) else {
            return ty.clone();
        };
        let Ty::Adt(of, open) = &self.impl_info(container).ty else {
            return ty.clone();
        };
        if of != gid {
            return ty.clone();
        }
        let mut subst = Subst::default();
        for (param, &arg) in params.iter().zip(args) {
            let param = self.lower_type(member.gid.file, *param);
            let arg = self.type_of(file, arg);
            if let Ty::Param(owner, _) = &param
                && *owner == member.gid
            {
                // `extend(items)`: what the bound says of the argument.
                for bound in self.bounds_of(&param) {
                    if let Bound::Trait { bindings, .. } = bound {
                        for (_, wanted) in bindings.iter() {
                            unify_argument(wanted, &self.item_of(&arg), &[container], &mut subst);
                        }
                    }
                }
            } else {
                unify(&param, &arg, &[container], &mut subst);
            }
        }
        let filled: Arc<[Ty]> = open
            .iter()
            .zip(known.iter())
            .map(|(open, known)| merge(known, &replace_open(open, container, &subst)))
            .collect();
        Ty::Adt(*gid, filled)
    }

    /// Returns the type of a path that stands for a value.
    fn path_value(&self, file: u32, id: UseId) -> Ty {
        let entities = self.resolve_use(file, id);
        let Some(entity) = entities.first() else {
            return Ty::Unknown;
        };
        let args: Vec<Ty> = self
            .code(file)
            .args(id)
            .iter()
            .map(|&arg| self.lower_type(file, arg))
            .collect();
        let Some(gid) = entity.definition() else {
            return Ty::Unknown;
        };
        let mut subst = Subst::default();
        for (index, arg) in args.iter().enumerate() {
            subst.set(gid, index as u16, arg.clone());
        }
        match self.def(gid).kind {
            Kind::Function | Kind::Method | Kind::StaticMethod | Kind::TraitMethod => {
                subst.extend(&self.path_subst(file, id, gid));
                Ty::Fn(gid, Arc::new(subst))
            }
            Kind::Constant | Kind::StaticVariable => match self.item(gid).kind {
                ItemKind::Typed { ty } => {
                    let ty = self
                        .lower_type(gid.file, ty)
                        .substitute(&self.path_subst(file, id, gid));
                    self.normalize(&ty)
                }
                _ => Ty::Unknown,
            },
            Kind::Struct | Kind::EnumMember => {
                let tuple = matches!(&self.item(gid).kind, ItemKind::Record { tuple } if !tuple.is_empty());
                let of = if self.def(gid).kind == Kind::Struct {
                    Some(gid)
                } else {
                    self.container(gid)
                };
                let Some(of) = of else { return Ty::Unknown };
                let given = if self.def(gid).kind == Kind::Struct {
                    args
                } else {
                    self.enum_args(file, id, args)
                };
                if !tuple {
                    return Ty::Adt(of, self.fill(of, &given));
                }
                let mut subst = Subst::default();
                for (index, arg) in given.iter().enumerate() {
                    subst.set(of, index as u16, arg.clone());
                }
                Ty::Constructor(gid, Arc::new(subst))
            }
            _ => Ty::Unknown,
        }
    }

    fn enum_args(&self, file: u32, id: UseId, own: Vec<Ty>) -> Vec<Ty> {
        if !own.is_empty() {
            return own;
        }
        match self.code(file).links.get(id as usize) {
            Some(Link::Path {
                base: Base::Use(of), ..
            }) => self
                .code(file)
                .args(*of)
                .iter()
                .map(|&arg| self.lower_type(file, arg))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns what the type before an associated function or constant tells of generic parameters.
    pub fn path_subst(&self, file: u32, id: UseId, gid: Gid) -> Subst {
        let Some(Link::Path { base, scope, .. }) = self.code(file).links.get(id as usize).copied() else {
            return Subst::default();
        };
        let base = match base {
            Base::Use(of) => {
                let args: Vec<Ty> = self
                    .code(file)
                    .args(of)
                    .iter()
                    .map(|&arg| self.lower_type(file, arg))
                    .collect();
                match self.resolve_use(file, of).first() {
                    Some(entity) => self.entity_type(entity, &args),
                    None => Ty::Unknown,
                }
            }
            Base::SelfType => self.self_type(file, scope),
            Base::Type(ty) => self.lower_type(file, ty),
            _ => return Subst::default(),
        };
        let name = self.name(gid);
        let members = self.associated(&base, name, Ns::Value);
        members
            .into_iter()
            .find(|member| member.gid == gid)
            .map(|member| member.subst)
            .unwrap_or_default()
    }
}

/// Returns the parameters of a type as given by its arguments.
fn arguments(gid: Gid, args: &[Ty]) -> Subst {
    let mut subst = Subst::default();
    for (index, arg) in args.iter().enumerate() {
        subst.set(gid, index as u16, arg.clone());
    }
    subst
}

/// Tells whether one is a reference to a reference and the other is not: coercion does not make that up.
fn is_other_depth(wanted: &Ty, given: &Ty) -> bool {
    let depth = |mut ty: &Ty| {
        let mut depth = 0;
        while let Ty::Ref(inner) = ty {
            depth += 1;
            ty = inner;
        }
        depth
    };
    depth(wanted) > depth(given) + 1
}

/// Replaces the parameters of an implementation by what is known of them, else by the unknown.
fn replace_open(ty: &Ty, owner: Gid, subst: &Subst) -> Ty {
    match ty {
        Ty::Param(of, index) if *of == owner => subst.get(*of, *index).cloned().unwrap_or(Ty::Unknown),
        _ => ty.substitute(subst),
    }
}
