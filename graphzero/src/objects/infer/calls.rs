//! Calls: signatures, what type parameters stand for in a call, what is expected of arguments, what is given.

use super::*;

impl<M: Modules> ObjectResolver<M> {
    pub(super) fn function(&self, file: FileId, index: u32) -> Option<&Function> {
        self.code(file)?.functions.get(index as usize)
    }

    /// Returns the signatures of what is called.
    pub(super) fn signatures(&self, ty: &Ty, new: bool, depth: usize) -> Vec<Signature> {
        match ty {
            Ty::Function(gid, env) => self
                .item(*gid)
                .and_then(|item| item.function)
                .map(|function| (gid.0, function, env.clone()))
                .into_iter()
                .collect(),
            Ty::Lambda(file, function, env) if !new => vec![(*file, *function, env.clone())],
            Ty::Shape(file, index, env) => {
                let Some(shape) = self.code(*file).map(|code| &code.shapes[*index as usize]) else {
                    return Vec::new();
                };
                let all = if new { &shape.constructs } else { &shape.calls };
                all.iter().map(|&function| (*file, function, env.clone())).collect()
            }
            Ty::Instance(gid, env) => {
                let own = self
                    .item(*gid)
                    .and_then(|item| item.shape)
                    .map(|shape| self.signatures(&Ty::Shape(gid.0, shape, env.clone()), new, depth))
                    .unwrap_or_default();
                if !own.is_empty() || depth > MAX_DEPTH {
                    return own;
                }
                self.bases(*gid, env, depth + 1)
                    .into_iter()
                    .filter_map(instance)
                    .flat_map(|base| self.signatures(&base, new, depth + 1))
                    .collect()
            }
            Ty::Class(gid, env) if new => {
                let constructors = self.class_members(*gid, env, "constructor", depth);
                constructors
                    .into_iter()
                    .filter_map(|(of, env)| Some((of.0, self.item(of)?.function?, env)))
                    .collect()
            }
            Ty::Both(all) => all.iter().flat_map(|ty| self.signatures(ty, new, depth)).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the first signature that takes so many arguments; without one, the last.
    pub(super) fn fitting(&self, signatures: Vec<Signature>, count: usize) -> Option<Signature> {
        let fits = |(file, function, _): &Signature| {
            self.function(*file, *function)
                .is_some_and(|f| f.rest || f.params.len() >= count)
        };
        let at = signatures.iter().position(fits);
        let mut signatures = signatures;
        match at {
            Some(at) => Some(signatures.swap_remove(at)),
            None => signatures.pop(),
        }
    }

    /// Returns the signature for each thing that may be called: the overloads of one function are one thing.
    pub(super) fn callees(&self, file: FileId, call: &Call, env: &Env, depth: usize) -> Vec<(Ty, Option<Signature>)> {
        // By file, holder and name.
        type Overloads = ((FileId, DefId, u32), Ty, Vec<Signature>);
        let mut overloads: Vec<Overloads> = Vec::new();
        let mut found = Vec::new();
        for ty in self.types(file, call.callee, env, depth) {
            let signatures = self.signatures(&ty, call.new, depth);
            if let Ty::Function(gid, _) = &ty {
                let def = &self.facts(gid.0).defs[gid.1 as usize];
                let key = (gid.0, def.container, def.name);
                match overloads.iter_mut().find(|(known, ..)| *known == key) {
                    Some((_, _, all)) => all.extend(signatures),
                    None => overloads.push((key, ty, signatures)),
                }
            } else {
                let signature = self.fitting(signatures, call.args.len());
                found.push((ty, signature));
            }
        }
        for (_, ty, signatures) in overloads {
            let signature = self.fitting(signatures, call.args.len());
            found.push((ty, signature));
        }
        found
    }

    /// Returns what a call gives.
    pub(super) fn called(&self, file: FileId, call: &Call, env: &Env, depth: usize) -> Vec<Ty> {
        let mut found = Vec::new();
        if let Some((method, holder)) = self.builtin(file, call, env, depth) {
            let mut elements = Vec::new();
            self.elements(&holder, depth, &mut elements);
            let results = |s: &Self| -> Vec<Ty> {
                let mut results = Vec::new();
                for &arg in call.args.first().into_iter() {
                    for ty in s.types(file, arg, env, depth) {
                        for (at, function, env) in s.signatures(&ty, false, depth) {
                            if let Some(function) = s.function(at, function) {
                                results.extend(s.all(at, &function.results, &env, depth));
                            }
                        }
                    }
                }
                results
            };
            match method {
                Builtin::Takes => {}
                Builtin::Gives | Builtin::Find => found.extend(elements),
                Builtin::Same | Builtin::Filter(_) => found.push(Ty::List(elements.into())),
                Builtin::Map => {
                    let mut flat = Vec::new();
                    for ty in results(self) {
                        match ty {
                            // `flatMap`, and close enough for a list of lists.
                            Ty::List(inner) => flat.extend(inner.iter().cloned()),
                            other => flat.push(other),
                        }
                    }
                    found.push(Ty::List(flat.into()));
                }
                Builtin::Reduce => {
                    for &arg in call.args.get(1).into_iter() {
                        found.extend(self.types(file, arg, env, depth));
                    }
                }
                Builtin::Then => found.extend(results(self)),
            }
            return found;
        }
        for (ty, signature) in self.callees(file, call, env, depth) {
            match (&ty, signature) {
                (Ty::Class(gid, _), signature) => {
                    let generics = self.item(*gid).map_or(&[][..], |item| &item.generics);
                    let inner = self.bind(gid.0, generics, signature.as_ref(), file, call, env, None, depth);
                    found.push(Ty::Instance(*gid, inner));
                }
                (_, Some(signature)) => {
                    let Some(function) = self.function(signature.0, signature.1) else {
                        continue;
                    };
                    let inner = self.bind(
                        signature.0,
                        &function.generics,
                        Some(&signature),
                        file,
                        call,
                        env,
                        None,
                        depth,
                    );
                    found.extend(self.all(signature.0, &function.results, &inner, depth));
                }
                (Ty::Function(gid, env), None) => {
                    if let Some(item) = self.item(*gid) {
                        found.extend(self.all(gid.0, &item.values, env, depth + 1));
                    }
                }
                (Ty::Instance(gid, env), None) => {
                    for (of, env) in self.class_members(*gid, env, "__call__", depth) {
                        if let Some(item) = self.item(of) {
                            found.extend(self.all(of.0, &item.values, &env, depth + 1));
                        }
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Returns the method of the language's own that a call means, and what it is called on.
    pub(super) fn builtin(&self, file: FileId, call: &Call, env: &Env, depth: usize) -> Option<(Builtin, Ty)> {
        let Some(Expr::Member { of, name, .. }) = self.code(file)?.exprs.get(call.callee as usize) else {
            return None;
        };
        let name = self.facts(file).name(*name);
        let method = self.modules.builtin(name)?;
        let mut all = self.types(file, *of, env, depth);
        let mut lists: Vec<Ty> = Vec::new();
        for ty in &all {
            if let Ty::List(inner) = ty {
                lists.extend(inner.iter().cloned());
            }
        }
        if method == Builtin::Then {
            let none = all.iter().all(|ty| self.members(ty, name, depth).is_empty());
            return (none && !all.is_empty()).then(|| (method, all.swap_remove(0)));
        }
        let known = all.iter().any(|ty| matches!(ty, Ty::List(_)));
        known.then(|| (method, Ty::List(lists.into())))
    }

    /// Returns what a call expects as an argument.
    pub(super) fn expected(&self, file: FileId, call: u32, index: usize, env: &Env, depth: usize) -> Vec<Ty> {
        let Some(call) = self.code(file).and_then(|code| code.calls.get(call as usize)) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        if let Some((method, holder)) = self.builtin(file, call, env, depth) {
            let mut elements = Vec::new();
            self.elements(&holder, depth, &mut elements);
            let element: Arc<[Ty]> = elements.into();
            let callback = |params: Vec<Arc<[Ty]>>| vec![Ty::Callback(params.into())];
            return match method {
                Builtin::Takes => element.to_vec(),
                Builtin::Gives | Builtin::Same => Vec::new(),
                Builtin::Find | Builtin::Map => callback(vec![element]),
                Builtin::Filter(count) => callback(vec![element; usize::from(count)]),
                Builtin::Reduce if index == 0 => {
                    let start = call.args.get(1).map(|&arg| self.types(file, arg, env, depth));
                    callback(vec![start.unwrap_or_default().into(), element])
                }
                Builtin::Reduce => Vec::new(),
                Builtin::Then => callback(vec![[holder].into()]),
            };
        }
        for (ty, signature) in self.callees(file, call, env, depth) {
            let Some(signature) = signature else { continue };
            let Some(function) = self.function(signature.0, signature.1) else {
                continue;
            };
            let Some((expected, rest)) = param(function, index) else {
                continue;
            };
            let (at, generics) = match &ty {
                Ty::Class(gid, _) => (gid.0, self.item(*gid).map_or(&[][..], |item| &item.generics[..])),
                _ => (signature.0, &function.generics[..]),
            };
            let inner = self.bind(at, generics, Some(&signature), file, call, env, Some(index), depth);
            let types = self.types(signature.0, expected, &inner, depth);
            if rest {
                types.iter().for_each(|ty| self.elements(ty, depth, &mut found));
            } else {
                found.extend(types);
            }
        }
        found
    }

    /// Finds what the type parameters of something called stand for: from type arguments, from the arguments but the
    /// `skipped` one, from what the place of the call expects, then from functions among the arguments.
    #[allow(clippy::too_many_arguments)] // one question, asked from three places
    pub(super) fn bind(
        &self,
        at: FileId,
        generics: &[ExprId],
        signature: Option<&Signature>,
        file: FileId,
        call: &Call,
        env: &Env,
        skipped: Option<usize>,
        depth: usize,
    ) -> Env {
        let mut inner = signature.map(|(_, _, env)| env.clone()).unwrap_or_default();
        if generics.is_empty() {
            return inner;
        }
        if !call.types.is_empty() {
            for (&parameter, &given) in generics.iter().zip(&call.types) {
                inner = inner.with((at, parameter), self.written(file, given, env));
            }
            return inner;
        }
        let Some((home, index, _)) = signature else {
            return inner;
        };
        let Some(function) = self.function(*home, *index) else {
            return inner;
        };
        let is_function = |arg: ExprId| {
            self.code(file)
                .is_some_and(|code| matches!(code.exprs[arg as usize], Expr::Function(_)))
        };
        for later in [false, true] {
            for (index, &arg) in call.args.iter().enumerate() {
                if skipped == Some(index) || is_function(arg) != later || (later && skipped.is_some()) {
                    continue;
                }
                let Some((wanted, rest)) = param(function, index) else {
                    continue;
                };
                let mut given = self.types(file, arg, env, depth);
                if rest {
                    given = vec![Ty::List(given.into())];
                }
                self.unify(*home, wanted, &given, generics, at, &mut inner, depth);
            }
            if !later && call.expected != 0 {
                let given = self.types(file, call.expected, env, depth);
                for &result in &function.results {
                    self.unify(*home, result, &given, generics, at, &mut inner, depth);
                }
            }
        }
        inner
    }

    /// Learns what type parameters stand for from a written type and what is known to be of it.
    #[allow(clippy::too_many_arguments)] // the state of one walk
    pub(super) fn unify(
        &self,
        file: FileId,
        wanted: ExprId,
        given: &[Ty],
        generics: &[ExprId],
        at: FileId,
        env: &mut Env,
        depth: usize,
    ) {
        let Some(code) = self.code(file).filter(|_| !given.is_empty() && depth < MAX_DEPTH) else {
            return;
        };
        match &code.exprs[wanted as usize] {
            Expr::TypeParam { .. } if file == at && generics.contains(&wanted) && env.get((at, wanted)).is_none() => {
                *env = env.with((at, wanted), Given::Types(given.into()));
            }
            Expr::Name { scope, name, .. } => {
                let name = self.facts(file).name(*name);
                for value in self.local_value(file, *scope, name).unwrap_or_default() {
                    if matches!(code.exprs[value as usize], Expr::TypeParam { .. }) {
                        self.unify(file, value, given, generics, at, env, depth + 1);
                    }
                }
            }
            Expr::Instance(of) => self.unify(file, *of, given, generics, at, env, depth + 1),
            Expr::List(inner) => {
                let mut elements = Vec::new();
                given.iter().for_each(|ty| self.elements(ty, depth, &mut elements));
                self.unify(file, *inner, &elements, generics, at, env, depth + 1);
            }
            Expr::Choice(all) => {
                for &part in all {
                    self.unify(file, part, given, generics, at, env, depth + 1);
                }
            }
            Expr::Both(all) => {
                for &part in all {
                    self.unify(file, part, given, generics, at, env, depth + 1);
                }
            }
            Expr::Apply { of, args } if args.is_empty() => {
                self.unify(file, *of, given, generics, at, env, depth + 1);
            }
            Expr::Apply { of, args } => {
                for gid in self.named(file, *of, env, depth) {
                    let Some(item) = self.item(gid) else { continue };
                    for ty in given {
                        let Some(known) = self.as_base(ty, gid, depth) else {
                            continue;
                        };
                        for (&parameter, &arg) in item.generics.iter().zip(args) {
                            if let Some(types) = known.get((gid.0, parameter)) {
                                let types = self.given(types, depth);
                                self.unify(file, arg, &types, generics, at, env, depth + 1);
                            }
                        }
                    }
                    // An alias stands for what it is written as; its own parameters are what the arguments name.
                    if self.kind(gid) == Kind::TypeAlias
                        && !given.iter().any(|ty| matches!(ty, Ty::Instance(g, _) if *g == gid))
                    {
                        for (&parameter, &arg) in item.generics.iter().zip(args) {
                            let mut own = Env::default();
                            for &value in &item.values {
                                self.unify(gid.0, value, given, &item.generics, gid.0, &mut own, depth + 4);
                            }
                            if let Some(types) = own.get((gid.0, parameter)) {
                                let types = self.given(types, depth);
                                self.unify(file, arg, &types, generics, at, env, depth + 1);
                            }
                        }
                    }
                }
            }
            Expr::Function(index) => {
                let Some(function) = code.functions.get(*index as usize) else {
                    return;
                };
                for ty in given {
                    for (home, theirs, inner) in self.signatures(ty, false, depth) {
                        let Some(found) = self.function(home, theirs) else {
                            continue;
                        };
                        for (index, &wanted) in function.params.iter().enumerate() {
                            if let Some((param, false)) = param(found, index)
                                && !matches!(
                                    self.code(home).map(|c| &c.exprs[param as usize]),
                                    Some(Expr::Argument { .. })
                                )
                            {
                                let types = self.types(home, param, &inner, depth);
                                self.unify(file, wanted, &types, generics, at, env, depth + 1);
                            }
                        }
                        let results = self.all(home, &found.results, &inner, depth);
                        for &wanted in &function.results {
                            self.unify(file, wanted, &results, generics, at, env, depth + 1);
                        }
                    }
                }
            }
            Expr::Shape(index) => {
                let Some(shape) = code.shapes.get(*index as usize) else {
                    return;
                };
                for &member in &shape.members {
                    let name = self.facts(file).def_name(member);
                    let types: Vec<Ty> = given
                        .iter()
                        .flat_map(|ty| self.member_types(ty, name, Space::Value, depth))
                        .collect();
                    for &value in &code.items[member as usize].values {
                        self.unify(file, value, &types, generics, at, env, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns what the parameters of a class or interface stand for in something of it or of what extends it.
    pub(super) fn as_base(&self, ty: &Ty, wanted: Gid, depth: usize) -> Option<Env> {
        match ty {
            Ty::Instance(gid, env) | Ty::Class(gid, env) if *gid == wanted => Some(env.clone()),
            Ty::Instance(gid, env) | Ty::Class(gid, env) if depth < MAX_DEPTH => self
                .bases(*gid, env, depth + 1)
                .iter()
                .find_map(|base| self.as_base(base, wanted, depth + 1)),
            Ty::Both(all) => all.iter().find_map(|ty| self.as_base(ty, wanted, depth + 1)),
            _ => None,
        }
    }
}
