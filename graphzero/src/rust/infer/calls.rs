//! Calls: what they give, and what closures among their arguments take.

use std::sync::Arc;

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
    pub(super) fn result(&self, file: u32, gid: Gid, mut subst: Subst, args: &[ExprId], path: bool) -> Ty {
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
    pub(super) fn learn_bounds(&self, gid: Gid, open: &[Gid], subst: &mut Subst) {
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
}
