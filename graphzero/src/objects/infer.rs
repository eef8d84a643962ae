//! What values are: from annotations, assignments, calls, and what their places expect.
//!
//! A value may be one of several types. Type parameters are followed by environments, not by substitution: a type keeps
//! what its parameters stand for, and an expression is computed under an environment. Answers are kept unless a
//! circle or a limit cut them short.

mod calls;
mod members;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;

use super::code::{Binding, Call, Expr, ExprId, Function, ScopeId};
use super::resolver::{Builtin, Modules, ObjectResolver, Space};
use super::ty::{Env, Gid, Given, THIS, Ty};
use crate::facts::{DefId, Kind, NONE};
use crate::program::FileId;

/// Questions nested deeper than this have no answer.
pub const MAX_DEPTH: usize = 60;

/// Steps after which a question has no answer: types of types can grow without bound.
const MAX_STEPS: u32 = 60_000;

/// Types of one value that are told apart.
const MAX_TYPES: usize = 64;

thread_local! {
    static ACTIVE: RefCell<HashSet<(FileId, ExprId, Env)>> = RefCell::new(HashSet::new());
    /// Answers that were cut short so far.
    static CUTS: Cell<u32> = const { Cell::new(0) };
    static STEPS: Cell<u32> = const { Cell::new(0) };
}

/// What a function takes and gives, where it stands, and what its type parameters stand for.
type Signature = (FileId, u32, Env);

impl<M: Modules> ObjectResolver<M> {
    /// Begins a question of its own.
    pub fn begin(&self) {
        STEPS.set(0);
    }

    /// Returns what a value may be.
    pub fn types(&self, file: FileId, expr: ExprId, env: &Env, depth: usize) -> Vec<Ty> {
        if expr == 0 {
            return Vec::new();
        }
        let key = (file, expr, env.clone());
        if let Some(known) = self.memo.get(&key) {
            return known.to_vec();
        }
        STEPS.set(STEPS.get() + 1);
        if depth > MAX_DEPTH || STEPS.get() > MAX_STEPS || !ACTIVE.with_borrow_mut(|active| active.insert(key.clone()))
        {
            CUTS.set(CUTS.get().wrapping_add(1));
            return Vec::new();
        }
        let before = CUTS.get();
        let mut found = self.compute(file, expr, env, depth + 1);
        let mut seen = HashSet::new();
        found.retain(|ty| seen.insert(ty.clone()));
        found.truncate(MAX_TYPES);
        ACTIVE.with_borrow_mut(|active| active.remove(&key));
        if CUTS.get() == before {
            self.memo.set(key, found.clone().into());
        }
        found
    }

    fn all(&self, file: FileId, exprs: &[ExprId], env: &Env, depth: usize) -> Vec<Ty> {
        exprs
            .iter()
            .flat_map(|&expr| self.types(file, expr, env, depth))
            .collect()
    }

    fn compute(&self, file: FileId, expr: ExprId, env: &Env, depth: usize) -> Vec<Ty> {
        let Some(entry) = self.code(file).and_then(|code| code.exprs.get(expr as usize)) else {
            return Vec::new();
        };
        match entry {
            Expr::Unknown => Vec::new(),
            Expr::Name { scope, name, ty } => {
                let name = self.facts(file).name(*name);
                if let Some(values) = self.local_value(file, *scope, name) {
                    return self.all(file, &values, env, depth);
                }
                self.lexical(file, *scope, name, Space::of(*ty), depth)
                    .into_iter()
                    .flat_map(|gid| self.value_of(gid, &Env::default(), depth))
                    .collect()
            }
            Expr::Member { of, name, ty } => {
                let name = self.facts(file).name(*name);
                self.types(file, *of, env, depth)
                    .iter()
                    .flat_map(|holder| self.member_types(holder, name, Space::of(*ty), depth))
                    .collect()
            }
            Expr::Call(call) => self.code(file).map_or_else(Vec::new, |code| {
                code.calls
                    .get(*call as usize)
                    .map_or_else(Vec::new, |call| self.called(file, call, env, depth))
            }),
            Expr::New(class) | Expr::Instance(class) => self
                .types(file, *class, env, depth)
                .into_iter()
                .filter_map(instance)
                .collect(),
            Expr::This(def) => env.get(THIS).map_or_else(
                || vec![Ty::Instance((file, *def), env.clone())],
                |this| self.given(this, depth),
            ),
            Expr::Class(def) => vec![Ty::Class((file, *def), env.clone())],
            Expr::Super(def) => self
                .bases((file, *def), env, depth)
                .into_iter()
                .filter_map(instance)
                .collect(),
            Expr::Object(def) => vec![Ty::Instance((file, *def), env.clone())],
            Expr::Element(of) => {
                let mut found = Vec::new();
                for ty in self.types(file, *of, env, depth) {
                    self.elements(&ty, depth, &mut found);
                }
                found
            }
            Expr::List(of) => vec![Ty::List(self.types(file, *of, env, depth).into())],
            Expr::Choice(all) => self.all(file, all, env, depth),
            Expr::Both(all) => self.both(file, all, env, depth),
            Expr::TypeParam { constraint, default } => match env.get((file, expr)) {
                Some(given) => self.given(given, depth),
                None => self.types(file, if *constraint == 0 { *default } else { *constraint }, env, depth),
            },
            Expr::Apply { of, args } => self.applied(file, *of, args, env, depth),
            Expr::Function(index) => vec![Ty::Lambda(file, *index, env.clone())],
            Expr::Shape(index) => vec![Ty::Shape(file, *index, env.clone())],
            Expr::Record(_) => vec![Ty::Record(file, expr, env.clone())],
            Expr::Expected { call, index } => self.expected(file, *call, *index as usize, env, depth),
            Expr::Argument { of, index } => {
                let mut found = Vec::new();
                for ty in self.types(file, *of, env, depth) {
                    if let Ty::Callback(params) = &ty {
                        found.extend(params.get(*index as usize).into_iter().flat_map(|p| p.iter().cloned()));
                    }
                    for (at, function, env) in self.signatures(&ty, false, depth) {
                        if let Some((param, rest)) = self.function(at, function).and_then(|f| param(f, *index as usize))
                        {
                            let types = self.types(at, param, &env, depth);
                            if rest {
                                types.iter().for_each(|ty| self.elements(ty, depth, &mut found));
                            } else {
                                found.extend(types);
                            }
                        }
                    }
                }
                found
            }
            Expr::Result(of) => {
                let mut found = Vec::new();
                for ty in self.types(file, *of, env, depth) {
                    for (at, function, env) in self.signatures(&ty, false, depth) {
                        if let Some(function) = self.function(at, function) {
                            found.extend(self.all(at, &function.results, &env, depth));
                        }
                    }
                }
                found
            }
            Expr::Literal(name) => vec![Ty::Literal(self.facts(file).name(*name).into())],
            Expr::Primitive => vec![Ty::Primitive],
            Expr::Each { parameter, of } => {
                let Some(bound) = self.parameter(file, *parameter) else {
                    return self.types(file, *of, env, depth);
                };
                let each = self.types(file, *parameter, env, depth);
                if each.len() < 2 {
                    return self.types(file, *of, env, depth);
                }
                each.into_iter()
                    .flat_map(|ty| {
                        let inner = env.with((file, bound), Given::Types([ty].into()));
                        self.types(file, *of, &inner, depth)
                    })
                    .collect()
            }
            Expr::Mapped { .. } => vec![Ty::Mapped(file, expr, env.clone())],
            Expr::Lookup { of, index } => {
                let (mut found, holders) = (Vec::new(), self.types(file, *of, env, depth));
                for index in self.types(file, *index, env, depth) {
                    for holder in &holders {
                        match &index {
                            Ty::Literal(name) => {
                                found.extend(self.member_types(holder, name, Space::Value, depth));
                            }
                            _ => self.elements(holder, depth, &mut found),
                        }
                    }
                }
                found
            }
            Expr::Narrow { of, member, equal, not } => self.narrowed(file, (*of, *member, equal, *not), env, depth),
            Expr::Guarded { of, guard } => {
                let mut found = Vec::new();
                for ty in self.types(file, *guard, env, depth) {
                    for (at, function, env) in self.signatures(&ty, false, depth) {
                        if let Some(function) = self.function(at, function) {
                            found.extend(self.types(at, function.guard, &env, depth));
                        }
                    }
                    // `instanceof`.
                    if let Ty::Class(..) = ty {
                        found.extend(instance(ty));
                    }
                }
                if found.is_empty() {
                    self.types(file, *of, env, depth)
                } else {
                    found
                }
            }
        }
    }

    /// Returns the type parameter that a written type is, if it is one.
    fn parameter(&self, file: FileId, expr: ExprId) -> Option<ExprId> {
        let code = self.code(file)?;
        match &code.exprs[expr as usize] {
            Expr::TypeParam { .. } => Some(expr),
            Expr::Apply { of, args } if args.is_empty() => self.parameter(file, *of),
            Expr::Name { scope, name, .. } => {
                let values = self.local_value(file, *scope, self.facts(file).name(*name))?;
                values
                    .into_iter()
                    .find(|&value| matches!(code.exprs[value as usize], Expr::TypeParam { .. }))
            }
            _ => None,
        }
    }

    /// Returns what a type parameter stands for.
    fn given(&self, given: &Given, depth: usize) -> Vec<Ty> {
        match given {
            Given::Types(types) => types.to_vec(),
            Given::Written(file, expr, env) => self.types(*file, *expr, env, depth),
        }
    }

    /// Makes an argument of a written type. A type without parameters needs no environment.
    fn written(&self, file: FileId, expr: ExprId, env: &Env) -> Given {
        let env = if self.is_closed(file, expr, 0) {
            Env::default()
        } else {
            env.clone()
        };
        Given::Written(file, expr, env)
    }

    fn is_closed(&self, file: FileId, expr: ExprId, depth: usize) -> bool {
        let Some(code) = self.code(file) else { return true };
        let all = |exprs: &[ExprId]| exprs.iter().all(|&e| self.is_closed(file, e, depth + 1));
        depth < 6
            && match &code.exprs[expr as usize] {
                Expr::Unknown | Expr::Literal(_) | Expr::Primitive => true,
                Expr::Name { scope, name, .. } => {
                    let name = self.facts(file).name(*name);
                    self.local_value(file, *scope, name).is_none()
                }
                Expr::Member { of, .. } | Expr::Instance(of) | Expr::List(of) | Expr::Element(of) => {
                    self.is_closed(file, *of, depth + 1)
                }
                Expr::Choice(parts) | Expr::Both(parts) => all(parts),
                Expr::Apply { of, args } => self.is_closed(file, *of, depth + 1) && all(args),
                _ => false,
            }
    }

    /// Returns the definitions that a type's name means.
    fn named(&self, file: FileId, expr: ExprId, env: &Env, depth: usize) -> Vec<Gid> {
        match self.code(file).and_then(|code| code.exprs.get(expr as usize)) {
            Some(Expr::Name { scope, name, ty }) => {
                let name = self.facts(file).name(*name);
                if self.local_value(file, *scope, name).is_some() {
                    return Vec::new();
                }
                self.lexical(file, *scope, name, Space::of(*ty), depth)
            }
            Some(Expr::Member { of, name, ty }) => {
                let name = self.facts(file).name(*name);
                self.types(file, *of, env, depth)
                    .iter()
                    .flat_map(|holder| match holder {
                        Ty::Module(module) => self.exported(*module, name, Space::of(*ty), depth),
                        _ => self
                            .members(holder, name, depth)
                            .into_iter()
                            .map(|(gid, _)| gid)
                            .collect(),
                    })
                    .collect()
            }
            Some(Expr::Instance(of)) => self.named(file, *of, env, depth),
            _ => Vec::new(),
        }
    }

    /// Returns something of a generic type with arguments.
    fn applied(&self, file: FileId, of: ExprId, args: &[ExprId], env: &Env, depth: usize) -> Vec<Ty> {
        let mut found = Vec::new();
        let named = self.named(file, of, env, depth);
        if named.is_empty() {
            return self
                .types(file, of, env, depth)
                .into_iter()
                .filter_map(instance)
                .collect();
        }
        for gid in named {
            let Some(item) = self.item(gid) else { continue };
            let mut inner = Env::default();
            for (index, &parameter) in item.generics.iter().enumerate() {
                let given = match args.get(index) {
                    Some(&arg) => self.written(file, arg, env),
                    None => match self.code(gid.0).map(|code| &code.exprs[parameter as usize]) {
                        Some(Expr::TypeParam { default, .. }) if *default != 0 => self.written(gid.0, *default, &inner),
                        _ => continue,
                    },
                };
                inner = inner.with((gid.0, parameter), given);
            }
            found.extend(self.value_of(gid, &inner, depth).into_iter().filter_map(instance));
        }
        found
    }

    /// Returns what a definition is as a value.
    pub fn value_of(&self, gid: Gid, env: &Env, depth: usize) -> Vec<Ty> {
        if gid.1 == NONE {
            return vec![Ty::Module(gid.0)];
        }
        let Some(item) = self.item(gid) else {
            return Vec::new();
        };
        match self.kind(gid) {
            Kind::Class | Kind::Interface | Kind::Enum | Kind::Module | Kind::Struct | Kind::Union => {
                vec![Ty::Class(gid, env.clone())]
            }
            Kind::EnumMember => vec![Ty::Literal(format!("{}:{}", gid.0, gid.1).into())],
            kind if kind.is_callable() && !item.property => vec![Ty::Function(gid, env.clone())],
            _ => self.all(gid.0, &item.values, env, depth + 1),
        }
    }

    /// Returns what is left of a value after a member of it was compared.
    fn narrowed(
        &self,
        file: FileId,
        (of, member, equal, not): (ExprId, u32, &[ExprId], bool),
        env: &Env,
        depth: usize,
    ) -> Vec<Ty> {
        let all = self.types(file, of, env, depth);
        let literal = |ty: &Ty| matches!(ty, Ty::Literal(_));
        let wanted: HashSet<Ty> = self.all(file, equal, env, depth).into_iter().filter(literal).collect();
        if wanted.is_empty() {
            return all;
        }
        if member == NONE {
            let kept = all.into_iter();
            return kept
                .filter(|ty| literal(ty) && wanted.contains(ty) != not || !literal(ty) && not)
                .collect();
        }
        let name = self.facts(file).name(member);
        let kept: Vec<Ty> = all
            .iter()
            .filter(|ty| {
                let values = self.member_types(ty, name, Space::Value, depth);
                if values.is_empty() || !values.iter().all(literal) {
                    return true;
                }
                if not {
                    !values.iter().all(|value| wanted.contains(value))
                } else {
                    values.iter().any(|value| wanted.contains(value))
                }
            })
            .cloned()
            .collect();
        if kept.is_empty() { all } else { kept }
    }

    /// Returns the values of a local variable, if the name is one.
    pub fn local_value(&self, file: FileId, scope: ScopeId, name: &str) -> Option<Vec<ExprId>> {
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
}

/// Returns an object of what a type names.
fn instance(ty: Ty) -> Option<Ty> {
    match ty {
        Ty::Class(gid, env) => Some(Ty::Instance(gid, env)),
        Ty::Module(_) => None,
        other => Some(other),
    }
}

/// Returns the parameter that takes an argument, and whether it takes all that is left.
fn param(function: &Function, index: usize) -> Option<(ExprId, bool)> {
    let last = function.params.len().checked_sub(1)?;
    if function.rest && index >= last {
        return Some((function.params[last], true));
    }
    function.params.get(index).map(|&param| (param, false))
}

/// Types that are shared by the threads of a query.
pub type Known = crate::memo::Memo<(FileId, ExprId, Env), Arc<[Ty]>>;
