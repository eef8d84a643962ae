//! Calls: what they give, and what closures among their arguments take.

use std::sync::Arc;

use zero_contracts::find::Confidence;

use super::*;

impl RustResolver {
    pub(super) fn call(&self, file: u32, callee: ExprId, args: &[ExprId]) -> Ty {
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

    pub(super) fn constructed(&self, file: u32, gid: Gid, mut subst: Subst, args: &[ExprId]) -> Ty {
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

    pub(super) fn method_call(&self, file: u32, recv: ExprId, name: UseId, args: &[ExprId], call: ExprId) -> Ty {
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
            let args = if path && *receiver != Receiver::None {
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
        let several = found.len() > 1;
        let mut found: Vec<Member> = found.into_iter().filter(fits).collect();
        if several && found.len() > 1 {
            found.retain(|member| self.items_fit(file, member, args, path));
        }
        if found.len() > 1 {
            // Which implementation is meant is told before a reference is added or removed.
            let exact: Vec<bool> = found.iter().map(|m| self.fits_exactly(file, m, args, path)).collect();
            if exact.contains(&true) {
                let mut exact = exact.into_iter();
                found.retain(|_| exact.next().unwrap_or(false));
            }
        }
        found
    }

    /// Pairs the parameters of a candidate, as they are written there, with the arguments of a call.
    fn pairs(&self, file: u32, member: &Member, args: &[ExprId], path: bool) -> Vec<(Ty, Ty)> {
        let ItemKind::Fn { params, receiver, .. } = &self.item(member.gid).kind else {
            return Vec::new();
        };
        let args = if path && *receiver != Receiver::None {
            args.get(1..).unwrap_or_default()
        } else {
            args
        };
        let wanted = |&param: &u32| self.normalize(&self.lower_type(member.gid.file, param).substitute(&member.subst));
        params
            .iter()
            .map(wanted)
            .zip(args.iter().map(|&arg| self.type_of(file, arg)))
            .collect()
    }

    fn fits_exactly(&self, file: u32, member: &Member, args: &[ExprId], path: bool) -> bool {
        let open = self.open(member.gid);
        let mut subst = member.subst.clone();
        self.pairs(file, member, args, path)
            .iter()
            .all(|(wanted, given)| unify(wanted, given, &open, &mut subst))
    }

    /// Tells whether what the arguments give agrees with what bounds say of it (`I: IntoIterator<Item = u8>`).
    fn items_fit(&self, file: u32, member: &Member, args: &[ExprId], path: bool) -> bool {
        let open = self.open(member.gid);
        let mut subst = member.subst.clone();
        for (wanted, given) in self.pairs(file, member, args, path) {
            unify_argument(&wanted, &given, &open, &mut subst);
        }
        let count = self.item(member.gid).generics.as_ref().map_or(0, |g| g.params.len());
        (0..count as u16).all(|index| {
            let Some(given) = subst.get(member.gid, index).cloned().filter(|ty| !ty.is_unknown()) else {
                return true;
            };
            self.bounds_of(&Ty::Param(member.gid, index)).iter().all(|bound| {
                let Bound::Trait { of, bindings, .. } = bound else {
                    return true;
                };
                bindings.iter().all(|(name, wanted)| {
                    let found = self.normalize(&Ty::Assoc(Arc::new(given.clone()), Some(*of), Arc::clone(name)));
                    matches!(found, Ty::Unknown | Ty::Assoc(..))
                        || unify(&wanted.substitute(&subst), &found, &open, &mut subst.clone())
                })
            })
        })
    }

    /// Returns the items whose parameters a call of a function settles.
    fn open(&self, gid: Gid) -> Vec<Gid> {
        [gid].into_iter().chain(self.container(gid)).collect()
    }

    /// Returns the implementation's own function where a call names it by its trait: `Trait::name(value)`.
    pub fn through_trait(&self, file: u32, id: UseId, gid: Gid, call: ExprId) -> Option<Gid> {
        let of = self.container(gid).filter(|of| self.def(*of).kind == Kind::Trait)?;
        let Some(Link::Path {
            base: Base::Use(base), ..
        }) = self.code(file).links.get(id as usize).copied()
        else {
            return None;
        };
        let (Some(Expr::Call { args, .. }), ItemKind::Fn { receiver, .. }) =
            (self.code(file).exprs.get(call as usize), &self.item(gid).kind)
        else {
            return None;
        };
        if self.resolve_use(file, base).first() != Some(&Entity::Def(of)) || *receiver == Receiver::None {
            return None;
        }
        let given = self.type_of(file, *args.first()?);
        let ty = match (&given, receiver) {
            (Ty::Ref(inner), Receiver::Shared | Receiver::Mutable) => (**inner).clone(),
            _ => given,
        };
        if matches!(ty, Ty::Param(..) | Ty::SelfOf(_) | Ty::Assoc(..) | Ty::Bounded(_)) {
            return None;
        }
        let (container, _) = self.impl_for(&ty, of, 0)?;
        let own = self.inside(container, self.name(gid), |kind| kind.is_callable());
        own.first().copied()
    }

    /// Returns the method of a trait that a `where` clause around a call names for the receiver's own type
    /// (`where Known: Trait<T>`): it comes before every implementation.
    pub fn method_of_where(&self, file: u32, id: UseId, ty: &Ty, name: &str) -> Option<Gid> {
        let ty = ty.strip();
        if !matches!(ty, Ty::Adt(..) | Ty::Prim(_) | Ty::Slice(_)) {
            return None;
        }
        let facts = self.facts(file);
        let mut owner = facts.uses[id as usize].owner;
        while let Some(def) = facts.defs.get(owner as usize) {
            let generics = self.code(file).items[owner as usize].generics.as_ref();
            for (subject, bounds) in generics.iter().flat_map(|generics| &generics.wheres) {
                let concrete = matches!(
                    self.code(file).types.get(*subject as usize),
                    Some(TypeRef::Path(_) | TypeRef::SelfType(_) | TypeRef::Prim(_) | TypeRef::Slice(_))
                );
                if !concrete || self.lower_type(file, *subject) != *ty {
                    continue;
                }
                for bound in self.lower_bounds(file, bounds, 0) {
                    let Bound::Trait { of, .. } = bound else { continue };
                    let declared = self.trait_member(of, name, Ns::Value, 0);
                    if let Some(gid) = declared.first() {
                        return Some(*gid);
                    }
                }
            }
            owner = def.container;
        }
        None
    }

    /// Returns what a call on `self` of a function with `&mut self` refers to, if a trait is implemented for `&mut T`.
    ///
    /// A method with `&self` is looked for by one more reference to `&mut T` before the reference that is there is
    /// followed, so such an implementation comes before that of `T`. Where a macro makes its methods, the method that
    /// these lead to is a candidate.
    pub fn through_mutable(&self, file: u32, id: UseId, recv: ExprId, ty: &Ty, gid: Gid) -> Option<(Gid, Confidence)> {
        let code = self.code(file);
        let Some(Expr::Ref(inner)) = code.exprs.get(recv as usize) else {
            return None;
        };
        let facts = self.facts(file);
        let caller = facts.enclosing_callable(facts.uses[id as usize].owner)?;
        let takes = |kind: &ItemKind, how: Receiver| matches!(kind, ItemKind::Fn { receiver, .. } if *receiver == how);
        let own = matches!(code.exprs.get(*inner as usize), Some(Expr::SelfValue(_)))
            && takes(&code.items[caller as usize].kind, Receiver::Mutable);
        if !own || !takes(&self.item(gid).kind, Receiver::Shared) {
            return None;
        }
        let container = self.container(gid)?;
        let of = match self.def(container).kind {
            Kind::Trait => container,
            _ => self.impl_info(container).of.as_ref()?.0,
        };
        let found = self.mutable_impl(ty.strip(), of)?;
        if let Some(own) = self.inside(found, self.name(gid), |kind| kind.is_callable()).first() {
            return Some((*own, Confidence::Exact));
        }
        Some((gid, Confidence::Scoped))
    }

    /// Returns the result of a call of a function.
    pub(super) fn result(&self, file: u32, gid: Gid, mut subst: Subst, args: &[ExprId], path: bool) -> Ty {
        let ItemKind::Fn { ret, receiver, .. } = self.item(gid).kind else {
            return Ty::Unknown;
        };
        let args = if path && receiver != Receiver::None {
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
    pub(super) fn bind_arguments(&self, file: u32, gid: Gid, subst: &mut Subst, args: &[ExprId], closures: bool) {
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
    pub fn learn_bounds(&self, gid: Gid, open: &[Gid], subst: &mut Subst) {
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
    pub(super) fn learn_result(&self, wanted: &Ty, ret: &Ty, open: &[Gid], subst: &mut Subst) {
        for bound in self.callable_bounds(wanted) {
            if let Bound::Fn(_, result) = bound {
                unify(&result, ret, open, subst);
            }
        }
    }

    pub(super) fn callable_bounds(&self, wanted: &Ty) -> Vec<Bound> {
        match wanted.strip() {
            Ty::FnPointer(params, ret) => vec![Bound::Fn(Arc::clone(params), Arc::clone(ret))],
            ty => self.bounds_of(ty),
        }
    }

    /// Replaces what is left of a function's own parameters by the unknown.
    pub(super) fn forget(&self, ty: &Ty, gid: Gid) -> Ty {
        let Some(generics) = &self.item(gid).generics else {
            return ty.clone();
        };
        let mut subst = Subst::default();
        for index in 0..generics.params.len() {
            subst.set(gid, index as u16, Ty::Unknown);
        }
        ty.substitute(&subst)
    }

    pub(super) fn closure_result(&self, file: u32, closure: ExprId) -> Ty {
        match self.code(file).exprs.get(closure as usize) {
            Some(Expr::Closure { ret, .. }) if *ret != NONE => self.normalize(&self.lower_type(file, *ret)),
            Some(Expr::Closure { body, .. }) => self.type_of(file, *body),
            _ => Ty::Unknown,
        }
    }

    /// Returns the type of a closure's parameter from the call that the closure is passed to.
    pub(super) fn closure_param(&self, file: u32, closure: ExprId, index: u32) -> Ty {
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
                    let receiver =
                        matches!(self.item(gid).kind, ItemKind::Fn { receiver, .. } if receiver != Receiver::None);
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
}
