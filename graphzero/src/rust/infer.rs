//! Types of expressions, as far as declarations and calls tell.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;

use super::code::{Base, Expr, ExprId, ItemKind, Link, Ns, Part, Prim, TypeRef};
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

    fn call(&self, file: u32, callee: ExprId, args: &[ExprId]) -> Ty {
        match self.type_of(file, callee) {
            Ty::Fn(gid, subst) => self.result(file, gid, (*subst).clone(), args, true),
            Ty::Constructor(gid, subst) => self.constructed(file, gid, (*subst).clone(), args),
            Ty::FnPointer(_, ret) => (*ret).clone(),
            Ty::Closure(file, closure) => self.closure_result(file, closure),
            // `Self(…)`.
            ty @ Ty::Adt(..) => ty,
            ty => self
                .bounds_of(ty.strip())
                .into_iter()
                .find_map(|bound| match bound {
                    Bound::Fn(_, ret) => Some(self.normalize(&ret)),
                    Bound::Trait { .. } => None,
                })
                .unwrap_or(Ty::Unknown),
        }
    }

    fn constructed(&self, file: u32, gid: Gid, mut subst: Subst, args: &[ExprId]) -> Ty {
        let of = if self.def(gid).kind == Kind::EnumMember {
            self.container(gid)
        } else {
            Some(gid)
        };
        let (Some(of), ItemKind::Record { tuple }) = (of, &self.item(gid).kind) else {
            return Ty::Unknown;
        };
        for (field, &arg) in tuple.iter().zip(args) {
            unify(
                &self.lower_type(gid.file, *field),
                &self.type_of(file, arg),
                &[of],
                &mut subst,
            );
        }
        let count = self.item(of).generics.as_ref().map_or(0, |g| g.params.len());
        Ty::Adt(
            of,
            (0..count)
                .map(|i| subst.get(of, i as u16).cloned().unwrap_or(Ty::Unknown))
                .collect(),
        )
    }

    fn method_call(&self, file: u32, recv: ExprId, name: UseId, args: &[ExprId], call: ExprId) -> Ty {
        let ty = self.type_of(file, recv);
        let text = self.facts(file).name(self.facts(file).uses[name as usize].name);
        let mut found = self.method(&ty, text);
        if found.len() > 1 {
            found = self.fitting(file, found, call);
        }
        if let Some(member) = found.into_iter().next() {
            let mut subst = member.subst;
            for (index, &arg) in self.code(file).args(name).iter().enumerate() {
                subst.set(member.gid, index as u16, self.lower_type(file, arg));
            }
            return self.result(file, member.gid, subst, args, false);
        }
        Ty::Unknown
    }

    /// Keeps the candidates that the arguments of a call fit: implementations of one trait for several argument types.
    pub fn fitting(&self, file: u32, found: Vec<Member>, call: ExprId) -> Vec<Member> {
        let (args, path) = match self.code(file).exprs.get(call as usize) {
            Some(Expr::Method { args, .. }) => (args, false),
            Some(Expr::Call { args, .. }) => (args, true),
            _ => return found,
        };
        let fits = |member: &Member| {
            let ItemKind::Fn { params, receiver, .. } = &self.item(member.gid).kind else {
                return true;
            };
            let Some(container) = self.container(member.gid).filter(|c| self.def(*c).kind == Kind::Impl) else {
                return true;
            };
            let info = self.impl_info(container);
            let Some((of, trait_args)) = &info.of else { return true };
            if of.file < self.external && trait_args.is_empty() {
                return true;
            }
            let args = if path && *receiver {
                args.get(1..).unwrap_or_default()
            } else {
                args
            };
            let mut subst = member.subst.clone();
            params.iter().zip(args).all(|(&param, &arg)| {
                let wanted = self.normalize(&self.lower_type(member.gid.file, param).substitute(&subst));
                let given = self.type_of(file, arg);
                unify_argument(&wanted, &given, &[container, member.gid], &mut subst)
                    && !(matches!(wanted, Ty::Prim(_) | Ty::Ref(_) | Ty::Adt(..)) && is_other_depth(&wanted, &given))
            })
        };
        found.into_iter().filter(fits).collect()
    }

    /// Returns the result of a call of a function.
    fn result(&self, file: u32, gid: Gid, mut subst: Subst, args: &[ExprId], path: bool) -> Ty {
        let ItemKind::Fn { ret, receiver, .. } = self.item(gid).kind else {
            return Ty::Unknown;
        };
        let args = if path && receiver {
            args.get(1..).unwrap_or_default()
        } else {
            args
        };
        self.bind_arguments(file, gid, &mut subst, args, true);
        if ret == NONE {
            return Ty::Tuple(Arc::new([]));
        }
        let ret = self.lower_type(gid.file, ret).substitute(&subst);
        let ret = self.normalize(&ret);
        self.forget(&ret, gid)
    }

    /// Learns generic parameters of a function from its arguments.
    fn bind_arguments(&self, file: u32, gid: Gid, subst: &mut Subst, args: &[ExprId], closures: bool) {
        let ItemKind::Fn { params, .. } = &self.item(gid).kind else {
            return;
        };
        let mut open = vec![gid];
        open.extend(self.container(gid));
        let mut later = Vec::new();
        for (&param, &arg) in params.iter().zip(args) {
            if matches!(self.code(file).exprs.get(arg as usize), Some(Expr::Closure { .. })) {
                later.push((param, arg));
                continue;
            }
            let wanted = self.lower_type(gid.file, param);
            if matches!(wanted, Ty::Prim(_)) {
                continue;
            }
            let given = self.type_of(file, arg);
            if let Ty::Fn(function, own) = &given {
                let ret = match self.item(*function).kind {
                    ItemKind::Fn { ret, .. } if ret != NONE => self.lower_type(function.file, ret).substitute(own),
                    _ => continue,
                };
                self.learn_result(&wanted, &ret, &open, subst);
            } else if let Ty::Constructor(constructor, _) = &given {
                let of = match self.def(*constructor).kind {
                    Kind::EnumMember => self.container(*constructor),
                    _ => Some(*constructor),
                };
                if let Some(of) = of {
                    self.learn_result(&wanted, &Ty::Adt(of, self.fill(of, &[])), &open, subst);
                }
            }
            unify_argument(&wanted, &given, &open, subst);
        }
        self.learn_bounds(gid, &open, subst);
        if !closures {
            return;
        }
        for (param, arg) in later {
            let wanted = self.lower_type(gid.file, param);
            self.learn_result(&wanted, &self.closure_result(file, arg), &open, subst);
        }
    }

    /// Learns from what bounds say of associated types (`I: IntoIterator<Item = T>`).
    fn learn_bounds(&self, gid: Gid, open: &[Gid], subst: &mut Subst) {
        let Some(generics) = &self.item(gid).generics else {
            return;
        };
        for index in 0..generics.params.len() {
            let param = Ty::Param(gid, index as u16);
            let Some(given) = subst.get(gid, index as u16).cloned().filter(|ty| !ty.is_unknown()) else {
                continue;
            };
            for bound in self.bounds_of(&param) {
                let Bound::Trait { of, bindings, .. } = bound else {
                    continue;
                };
                for (name, wanted) in bindings.iter() {
                    let found = self.normalize(&Ty::Assoc(Arc::new(given.clone()), Some(of), Arc::clone(name)));
                    if !matches!(found, Ty::Unknown) {
                        unify(wanted, &found, open, subst);
                    }
                }
            }
        }
    }

    /// Learns from the result of a function that is passed for a parameter.
    fn learn_result(&self, wanted: &Ty, ret: &Ty, open: &[Gid], subst: &mut Subst) {
        for bound in self.callable_bounds(wanted) {
            if let Bound::Fn(_, result) = bound {
                unify(&result, ret, open, subst);
            }
        }
    }

    fn callable_bounds(&self, wanted: &Ty) -> Vec<Bound> {
        match wanted.strip() {
            Ty::FnPointer(params, ret) => vec![Bound::Fn(Arc::clone(params), Arc::clone(ret))],
            ty => self.bounds_of(ty),
        }
    }

    /// Replaces what is left of a function's own parameters by the unknown.
    fn forget(&self, ty: &Ty, gid: Gid) -> Ty {
        let Some(generics) = &self.item(gid).generics else {
            return ty.clone();
        };
        let mut subst = Subst::default();
        for index in 0..generics.params.len() {
            subst.set(gid, index as u16, Ty::Unknown);
        }
        ty.substitute(&subst)
    }

    fn closure_result(&self, file: u32, closure: ExprId) -> Ty {
        match self.code(file).exprs.get(closure as usize) {
            Some(Expr::Closure { ret, .. }) if *ret != NONE => self.normalize(&self.lower_type(file, *ret)),
            Some(Expr::Closure { body, .. }) => self.type_of(file, *body),
            _ => Ty::Unknown,
        }
    }

    /// Returns the type of a closure's parameter from the call that the closure is passed to.
    fn closure_param(&self, file: u32, closure: ExprId, index: u32) -> Ty {
        let Some(Expr::Closure { call, arg, .. }) = self.code(file).exprs.get(closure as usize) else {
            return Ty::Unknown;
        };
        let (gid, mut subst, args, position) = match self.code(file).exprs.get(*call as usize) {
            Some(Expr::Method { recv, name, args }) => {
                let ty = self.type_of(file, *recv);
                let text = self.facts(file).name(self.facts(file).uses[*name as usize].name);
                let Some(member) = self.method(&ty, text).into_iter().next() else {
                    return Ty::Unknown;
                };
                (member.gid, member.subst, &args[..], *arg as usize)
            }
            Some(Expr::Call { callee, args }) => match self.type_of(file, *callee) {
                Ty::Fn(gid, subst) => {
                    let receiver = matches!(self.item(gid).kind, ItemKind::Fn { receiver: true, .. });
                    let skip = usize::from(receiver);
                    let Some(position) = (*arg as usize).checked_sub(skip) else {
                        return Ty::Unknown;
                    };
                    (gid, (*subst).clone(), args.get(skip..).unwrap_or_default(), position)
                }
                _ => return Ty::Unknown,
            },
            _ => return Ty::Unknown,
        };
        self.bind_arguments(file, gid, &mut subst, args, false);
        let ItemKind::Fn { params, .. } = &self.item(gid).kind else {
            return Ty::Unknown;
        };
        let Some(&param) = params.get(position) else {
            return Ty::Unknown;
        };
        for bound in self.callable_bounds(&self.lower_type(gid.file, param)) {
            if let Bound::Fn(params, _) = bound {
                let Some(param) = params.get(index as usize) else {
                    continue;
                };
                return self.forget(&self.normalize(&param.substitute(&subst)), gid);
            }
        }
        Ty::Unknown
    }

    fn field_type(&self, file: u32, recv: ExprId, name: &str) -> Ty {
        let mut step = self.type_of(file, recv).strip().clone();
        for _ in 0..8 {
            if let Ty::Adt(gid, args) = &step
                && let Some(field) = self.inside(*gid, name, |kind| kind == Kind::Field).first()
                && let ItemKind::Typed { ty } = self.item(*field).kind
            {
                return self.normalize(&self.lower_type(field.file, ty).substitute(&arguments(*gid, args)));
            }
            match self.dereference(&step) {
                Some(inner) => step = inner.strip().clone(),
                None => break,
            }
        }
        Ty::Unknown
    }

    fn tuple_field(&self, ty: &Ty, index: u32) -> Ty {
        let by_reference = matches!(ty, Ty::Ref(_));
        let mut step = ty.strip().clone();
        for _ in 0..8 {
            match &step {
                Ty::Tuple(all) => {
                    let found = all.get(index as usize).cloned().unwrap_or(Ty::Unknown);
                    return if by_reference && !found.is_unknown() {
                        found.reference()
                    } else {
                        found
                    };
                }
                Ty::Adt(gid, args) => {
                    if let ItemKind::Record { tuple } = &self.item(*gid).kind
                        && let Some(&field) = tuple.get(index as usize)
                    {
                        return self.normalize(&self.lower_type(gid.file, field).substitute(&arguments(*gid, args)));
                    }
                }
                _ => {}
            }
            match self.dereference(&step) {
                Some(inner) => step = inner.strip().clone(),
                None => break,
            }
        }
        Ty::Unknown
    }

    fn index(&self, file: u32, recv: ExprId, index: ExprId) -> Ty {
        let of = self.type_of(file, recv).strip().clone();
        let range = matches!(self.code(file).exprs.get(index as usize), Some(Expr::Range(_)));
        let mut step = of;
        for _ in 0..8 {
            match &step {
                Ty::Slice(inner) | Ty::Array(inner) => {
                    return if range {
                        Ty::Slice(Arc::clone(inner))
                    } else {
                        (**inner).clone()
                    };
                }
                Ty::Prim(Prim::Str) => return step,
                Ty::Adt(gid, args) if gid.file >= self.external && self.name(*gid) == "Vec" => {
                    let inner = args.first().cloned().unwrap_or(Ty::Unknown);
                    return if range { Ty::Slice(Arc::new(inner)) } else { inner };
                }
                _ => {}
            }
            if range
                && matches!(&step, Ty::Adt(gid, _) if gid.file < self.external)
                && self.dereference(&step).is_none()
            {
                // A range of something like a slice is something of the same kind.
                return step;
            }
            if let Some(of) = self.std("Index")
                && let Some((container, subst)) = self.impl_for(&step, of, 0)
                && let Some(gid) = self
                    .inside(container, "Output", |kind| kind == Kind::AssociatedType)
                    .first()
                && let ItemKind::Alias { ty, .. } = self.item(*gid).kind
            {
                return self.normalize(&self.lower_type(gid.file, ty).substitute(&subst));
            }
            match self.dereference(&step) {
                Some(inner) => step = inner.strip().clone(),
                None => break,
            }
        }
        Ty::Unknown
    }

    fn binary(&self, file: u32, left: ExprId, right: ExprId) -> Ty {
        let ty = self.type_of(file, left);
        match ty.strip() {
            Ty::Prim(Prim::Int | Prim::Float) | Ty::Unknown => {
                let other = self.type_of(file, right);
                merge(ty.strip(), other.strip())
            }
            Ty::Prim(_) => ty.strip().clone(),
            other => {
                for name in [
                    "Add", "Sub", "Mul", "Div", "BitAnd", "BitOr", "Shl", "Shr", "Rem", "BitXor",
                ] {
                    if let Some(of) = self.std(name)
                        && let Some((container, subst)) = self.impl_for(other, of, 0)
                        && let Some(gid) = self
                            .inside(container, "Output", |kind| kind == Kind::AssociatedType)
                            .first()
                        && let ItemKind::Alias { ty, .. } = self.item(*gid).kind
                    {
                        return self.normalize(&self.lower_type(gid.file, ty).substitute(&subst));
                    }
                }
                other.clone()
            }
        }
    }

    /// Returns what `?` gives.
    fn unwrapped(&self, ty: &Ty) -> Ty {
        match ty.strip() {
            Ty::Adt(gid, args) if matches!(self.name(*gid), "Result" | "Option" | "Poll") => {
                args.first().cloned().unwrap_or(Ty::Unknown)
            }
            _ => Ty::Unknown,
        }
    }

    fn element(&self, ty: &Ty) -> Ty {
        match ty {
            Ty::Slice(inner) | Ty::Array(inner) => (**inner).clone(),
            Ty::Adt(..) => match self.dereference(ty) {
                Some(inner) => self.element(inner.strip()),
                None => Ty::Unknown,
            },
            _ => Ty::Unknown,
        }
    }

    /// Returns what iteration over a value gives.
    pub fn item_of(&self, ty: &Ty) -> Ty {
        if ty.is_unknown() {
            return Ty::Unknown;
        }
        if let Some(inner) = match ty {
            Ty::Ref(inner) => match &**inner {
                Ty::Slice(item) | Ty::Array(item) => Some((**item).clone().reference()),
                _ => None,
            },
            Ty::Array(item) => Some((**item).clone()),
            _ => None,
        } {
            return inner;
        }
        for name in ["IntoIterator", "Iterator"] {
            let Some(of) = self.std(name) else { continue };
            for step in [ty, ty.strip()] {
                let found = self.normalize(&Ty::Assoc(Arc::new(step.clone()), Some(of), "Item".into()));
                if !matches!(found, Ty::Unknown | Ty::Assoc(..)) {
                    return found;
                }
                if let Ty::Assoc(..) = found
                    && self.implements(step, of, 0)
                {
                    return found;
                }
            }
        }
        Ty::Unknown
    }

    /// Returns the type of what a pattern binds.
    fn part(&self, file: u32, of: ExprId, ty: u32, part: Part) -> Ty {
        let value = self.type_of(file, of);
        let by_reference = matches!(value, Ty::Ref(_));
        let Some(record) = self.pattern_record(file, ty) else {
            return Ty::Unknown;
        };
        let adt = if self.def(record).kind == Kind::EnumMember {
            self.container(record)
        } else {
            Some(record)
        };
        let Some(adt) = adt else { return Ty::Unknown };
        let written = match part {
            Part::Index(index) => match &self.item(record).kind {
                ItemKind::Record { tuple } => tuple.get(index as usize).copied(),
                _ => None,
            },
            Part::Name(name) => {
                let name = self.facts(file).name(name);
                self.inside(record, name, |kind| kind == Kind::Field)
                    .first()
                    .and_then(|field| match self.item(*field).kind {
                        ItemKind::Typed { ty } => Some(ty),
                        _ => None,
                    })
            }
        };
        let Some(written) = written else { return Ty::Unknown };
        let mut matched = value.strip().clone();
        for _ in 0..4 {
            if matches!(&matched, Ty::Adt(gid, _) if *gid == adt) {
                break;
            }
            match self.dereference(&matched) {
                Some(inner) => matched = inner.strip().clone(),
                None => break,
            }
        }
        let subst = match &matched {
            Ty::Adt(gid, args) if *gid == adt => arguments(adt, args),
            _ => arguments(adt, &self.fill(adt, &[])),
        };
        match self.normalize(&self.lower_type(record.file, written).substitute(&subst)) {
            Ty::Unknown => Ty::Unknown,
            ty if by_reference => ty.reference(),
            ty => ty,
        }
    }

    fn pattern_record(&self, file: u32, ty: u32) -> Option<Gid> {
        if let Some(TypeRef::Path(id)) = self.code(file).types.get(ty as usize) {
            let found = self.resolve_use(file, *id);
            let found = found
                .iter()
                .filter_map(Entity::definition)
                .find(|gid| matches!(self.def(*gid).kind, Kind::EnumMember | Kind::Struct | Kind::Union));
            if found.is_some() {
                return found;
            }
        }
        self.records_of(file, ty).first().copied()
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
