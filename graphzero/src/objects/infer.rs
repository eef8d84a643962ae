//! What values are: from annotations, assignments, calls, and what their places expect.
//!
//! A value may be one of several types. Type parameters are followed by environments, not by substitution: a type keeps
//! what its parameters stand for, and an expression is computed under an environment. Answers are kept unless a
//! circle or a limit cut them short.

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
        if depth > MAX_DEPTH
            || STEPS.get() > MAX_STEPS
            || !ACTIVE.with_borrow_mut(|active| active.insert(key.clone()))
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
            Expr::This(def) => env
                .get(THIS)
                .map_or_else(|| vec![Ty::Instance((file, *def), env.clone())], |this| self.given(this, depth)),
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
                        if let Some((param, rest)) = self.function(at, function).and_then(|f| param(f, *index as usize)) {
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
            Expr::Narrow {
                of,
                member,
                equal,
                not,
            } => self.narrowed(file, (*of, *member, equal, *not), env, depth),
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

    /// Returns what a member of something is.
    fn member_types(&self, holder: &Ty, name: &str, space: Space, depth: usize) -> Vec<Ty> {
        match holder {
            Ty::Module(module) => {
                let found = self.exported(*module, name, space, depth);
                if found.is_empty()
                    && let Some(inner) = self.modules.submodule(*module, name)
                {
                    return vec![Ty::Module(inner)];
                }
                found
                    .into_iter()
                    .flat_map(|gid| self.value_of(gid, &Env::default(), depth))
                    .collect()
            }
            Ty::Record(file, expr, env) => {
                let (Some(code), Some(id)) = (self.code(*file), self.facts(*file).name_id(name)) else {
                    return Vec::new();
                };
                match &code.exprs[*expr as usize] {
                    Expr::Record(all) => all
                        .iter()
                        .filter(|(key, _)| *key == id)
                        .flat_map(|(_, value)| self.types(*file, *value, env, depth))
                        .collect(),
                    _ => Vec::new(),
                }
            }
            Ty::Both(all) => all
                .iter()
                .flat_map(|ty| self.member_types(ty, name, space, depth))
                .collect(),
            Ty::Mapped(file, expr, env) => {
                let Some(Expr::Mapped {
                    of,
                    keys,
                    parameter,
                    value,
                }) = self.code(*file).and_then(|code| code.exprs.get(*expr as usize))
                else {
                    return Vec::new();
                };
                let key = Ty::Literal(name.into());
                let has = if *of == 0 {
                    self.types(*file, *keys, env, depth).contains(&key)
                } else {
                    true
                };
                if !has {
                    return Vec::new();
                }
                let inner = env.with((*file, *parameter), Given::Types([key].into()));
                let found = self.types(*file, *value, &inner, depth);
                if found.is_empty() && *of != 0 {
                    // What is made of each cannot be told: at least it has its name.
                    return self
                        .types(*file, *of, env, depth)
                        .iter()
                        .flat_map(|ty| self.member_types(ty, name, space, depth))
                        .collect();
                }
                found
            }
            _ => self
                .members(holder, name, depth)
                .into_iter()
                .flat_map(|(gid, env)| self.value_of(gid, &env, depth))
                .collect(),
        }
    }

    fn both(&self, file: FileId, all: &[ExprId], env: &Env, depth: usize) -> Vec<Ty> {
        let mut rows: Vec<Vec<Ty>> = vec![Vec::new()];
        for &part in all {
            let types = self.types(file, part, env, depth);
            if types.is_empty() || rows.len() * types.len() > MAX_TYPES {
                continue;
            }
            rows = rows
                .iter()
                .flat_map(|row| {
                    types.iter().map(|ty| {
                        let mut row = row.clone();
                        row.push(ty.clone());
                        row
                    })
                })
                .collect();
        }
        rows.into_iter()
            .filter_map(|mut row| match row.len() {
                0 => None,
                1 => row.pop(),
                _ => Some(Ty::Both(row.into())),
            })
            .collect()
    }

    fn elements(&self, ty: &Ty, depth: usize, found: &mut Vec<Ty>) {
        match ty {
            Ty::List(inner) => found.extend(inner.iter().cloned()),
            Ty::Record(file, expr, env) => {
                if let Some(Expr::Record(all)) = self.code(*file).map(|code| &code.exprs[*expr as usize]) {
                    for (_, value) in all {
                        found.extend(self.types(*file, *value, env, depth));
                    }
                }
            }
            Ty::Shape(file, index, env) => {
                if let Some(shape) = self.code(*file).and_then(|code| code.shapes.get(*index as usize)) {
                    found.extend(self.types(*file, shape.index, env, depth));
                }
            }
            Ty::Mapped(file, expr, env) => {
                if let Some(Expr::Mapped { value, .. }) = self.code(*file).map(|code| &code.exprs[*expr as usize]) {
                    found.extend(self.types(*file, *value, env, depth));
                }
            }
            Ty::Instance(gid, env) => {
                let shape = self.item(*gid).and_then(|item| item.shape);
                if let Some(shape) = shape {
                    self.elements(&Ty::Shape(gid.0, shape, env.clone()), depth, found);
                }
            }
            _ => {}
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
                        Some(Expr::TypeParam { default, .. }) if *default != 0 => {
                            self.written(gid.0, *default, &inner)
                        }
                        _ => continue,
                    },
                };
                inner = inner.with((gid.0, parameter), given);
            }
            found.extend(
                self.value_of(gid, &inner, depth)
                    .into_iter()
                    .filter_map(instance),
            );
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

    /// Returns the bases of a class or interface.
    fn bases(&self, gid: Gid, env: &Env, depth: usize) -> Vec<Ty> {
        let Some(item) = self.item(gid) else { return Vec::new() };
        let mut found = self.all(gid.0, &item.bases, env, depth + 1);
        found.retain(|ty| !matches!(ty, Ty::Class(base, _) | Ty::Instance(base, _) if *base == gid));
        found
    }

    /// Returns the members of a name of what a value is, and what their holders' type parameters stand for.
    pub fn members(&self, ty: &Ty, name: &str, depth: usize) -> Vec<(Gid, Env)> {
        match ty {
            Ty::Instance(gid, env) | Ty::Class(gid, env) => {
                let env = if env.get(THIS).is_some() {
                    env.clone()
                } else {
                    env.with(THIS, Given::Types(instance(ty.clone()).into_iter().collect()))
                };
                self.class_members(*gid, &env, name, depth)
            }
            Ty::Function(gid, env) => self.inside(*gid, name).into_iter().map(|g| (g, env.clone())).collect(),
            Ty::Module(file) => self
                .exported(*file, name, Space::Any, depth)
                .into_iter()
                .filter(|g| g.1 != NONE)
                .map(|gid| (gid, Env::default()))
                .collect(),
            Ty::Shape(file, index, env) => {
                let (Some(code), Some(id)) = (self.code(*file), self.facts(*file).name_id(name)) else {
                    return Vec::new();
                };
                let shape = &code.shapes[*index as usize];
                shape
                    .members
                    .iter()
                    .filter(|&&def| self.facts(*file).defs[def as usize].name == id)
                    .map(|&def| ((*file, def), env.clone()))
                    .collect()
            }
            Ty::Both(all) => all.iter().flat_map(|ty| self.members(ty, name, depth)).collect(),
            Ty::Mapped(file, expr, env) => match self.code(*file).map(|code| &code.exprs[*expr as usize]) {
                Some(Expr::Mapped { of, .. }) => self
                    .types(*file, *of, env, depth)
                    .iter()
                    .flat_map(|ty| self.members(ty, name, depth))
                    .collect(),
                _ => Vec::new(),
            },
            Ty::List(_) | Ty::Lambda(..) | Ty::Record(..) | Ty::Literal(_) | Ty::Primitive | Ty::Callback(_) => {
                Vec::new()
            }
        }
    }

    /// Returns what a definition holds under a name.
    pub fn inside(&self, gid: Gid, name: &str) -> Vec<Gid> {
        let facts = self.facts(gid.0);
        let Some(id) = facts.name_id(name) else {
            return Vec::new();
        };
        let own = |(_, def): &(usize, &crate::facts::Def)| def.container == gid.1 && def.name == id && !def.further;
        facts
            .defs
            .iter()
            .enumerate()
            .filter(own)
            .map(|(def, _)| (gid.0, def as DefId))
            .collect()
    }

    fn class_members(&self, gid: Gid, env: &Env, name: &str, depth: usize) -> Vec<(Gid, Env)> {
        if depth > MAX_DEPTH {
            CUTS.set(CUTS.get().wrapping_add(1));
            return Vec::new();
        }
        let own = self.inside(gid, name);
        if !own.is_empty() {
            return own.into_iter().map(|gid| (gid, env.clone())).collect();
        }
        for base in self.bases(gid, env, depth + 1) {
            let found = match &base {
                Ty::Instance(of, inner) | Ty::Class(of, inner) => {
                    let inner = match env.get(THIS) {
                        Some(this) => inner.with(THIS, this.clone()),
                        None => inner.clone(),
                    };
                    self.class_members(*of, &inner, name, depth + 1)
                }
                other => self.members(other, name, depth + 1),
            };
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    fn function(&self, file: FileId, index: u32) -> Option<&Function> {
        self.code(file)?.functions.get(index as usize)
    }

    /// Returns the signatures of what is called.
    fn signatures(&self, ty: &Ty, new: bool, depth: usize) -> Vec<Signature> {
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
            Ty::Both(all) => all
                .iter()
                .flat_map(|ty| self.signatures(ty, new, depth))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the first signature that takes so many arguments; without one, the last.
    fn fitting(&self, signatures: Vec<Signature>, count: usize) -> Option<Signature> {
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
    fn callees(&self, file: FileId, call: &Call, env: &Env, depth: usize) -> Vec<(Ty, Option<Signature>)> {
        let mut overloads: Vec<((FileId, DefId, u32), Ty, Vec<Signature>)> = Vec::new();
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
    fn called(&self, file: FileId, call: &Call, env: &Env, depth: usize) -> Vec<Ty> {
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
    fn builtin(&self, file: FileId, call: &Call, env: &Env, depth: usize) -> Option<(Builtin, Ty)> {
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
    fn expected(&self, file: FileId, call: u32, index: usize, env: &Env, depth: usize) -> Vec<Ty> {
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
    fn bind(
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
        let Some((home, index, _)) = signature else { return inner };
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
                let Some((wanted, rest)) = param(function, index) else { continue };
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
    fn unify(
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
            Expr::TypeParam { .. } => {
                if file == at && generics.contains(&wanted) && env.get((at, wanted)).is_none() {
                    *env = env.with((at, wanted), Given::Types(given.into()));
                }
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
                        let Some(known) = self.as_base(ty, gid, depth) else { continue };
                        for (&parameter, &arg) in item.generics.iter().zip(args) {
                            if let Some(types) = known.get((gid.0, parameter)) {
                                let types = self.given(types, depth);
                                self.unify(file, arg, &types, generics, at, env, depth + 1);
                            }
                        }
                    }
                    // An alias stands for what it is written as; its own parameters are what the arguments name.
                    if self.kind(gid) == Kind::TypeAlias && !given.iter().any(|ty| matches!(ty, Ty::Instance(g, _) if *g == gid)) {
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
                        let Some(found) = self.function(home, theirs) else { continue };
                        for (index, &wanted) in function.params.iter().enumerate() {
                            if let Some((param, false)) = param(found, index)
                                && !matches!(self.code(home).map(|c| &c.exprs[param as usize]), Some(Expr::Argument { .. }))
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
    fn as_base(&self, ty: &Ty, wanted: Gid, depth: usize) -> Option<Env> {
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
