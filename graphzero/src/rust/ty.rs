//! Types as inference sees them, and unification.

use std::sync::Arc;

use super::code::{ExprId, Prim};

/// A definition of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gid {
    /// The file.
    pub file: u32,
    /// The definition in its facts.
    pub def: u32,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// Nothing is known.
    Unknown,
    /// `!`.
    Never,
    /// A struct, enum or union with its type arguments.
    Adt(Gid, Arc<[Ty]>),
    /// A primitive type.
    Prim(Prim),
    /// A reference.
    Ref(Arc<Ty>),
    /// A raw pointer.
    Ptr(Arc<Ty>),
    /// A slice.
    Slice(Arc<Ty>),
    /// An array.
    Array(Arc<Ty>),
    /// A tuple.
    Tuple(Arc<[Ty]>),
    /// A generic parameter of an item.
    Param(Gid, u16),
    /// `Self` inside a trait.
    SelfOf(Gid),
    /// A function item, with what is known of generic parameters.
    Fn(Gid, Arc<Subst>),
    /// The constructor of a tuple struct or variant.
    Constructor(Gid, Arc<Subst>),
    /// A function pointer.
    FnPointer(Arc<[Ty]>, Arc<Ty>),
    /// A closure.
    Closure(u32, ExprId),
    /// Anything with these bounds.
    Bounded(Arc<[Bound]>),
    /// An associated type that is not known further.
    Assoc(Arc<Ty>, Option<Gid>, Arc<str>),
}

/// A bound: a trait with arguments and bindings, or the signature of a `Fn` trait.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// A trait.
    Trait {
        /// The trait.
        of: Gid,
        /// Its type arguments.
        args: Arc<[Ty]>,
        /// Associated types that are given.
        bindings: Arc<[(Arc<str>, Ty)]>,
    },
    /// `Fn(A) -> B`.
    Fn(Arc<[Ty]>, Arc<Ty>),
}

/// What generic parameters stand for, in order of the parameters; `Self` of a trait has the number `u16::MAX`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Subst(Vec<((Gid, u16), Ty)>);

/// The number of `Self` of a trait in a [`Subst`].
pub const SELF: u16 = u16::MAX;

impl Subst {
    /// Returns what a parameter stands for.
    pub fn get(&self, owner: Gid, index: u16) -> Option<&Ty> {
        self.0.iter().find(|(key, _)| *key == (owner, index)).map(|(_, ty)| ty)
    }

    /// Sets what a parameter stands for, unless something is known already.
    pub fn set(&mut self, owner: Gid, index: u16, ty: Ty) {
        match self.0.iter_mut().find(|(key, _)| *key == (owner, index)) {
            Some((_, known)) => {
                if known.is_vague() {
                    *known = merge(known, &ty);
                }
            }
            None => self.0.push(((owner, index), ty)),
        }
    }

    /// Adds what another knows.
    pub fn extend(&mut self, other: &Self) {
        for ((owner, index), ty) in &other.0 {
            self.set(*owner, *index, ty.clone());
        }
    }
}

impl Ty {
    /// Makes a reference.
    pub fn reference(self) -> Self {
        Self::Ref(Arc::new(self))
    }

    /// Tells whether nothing at all is known.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// Tells whether a part is not known.
    pub fn is_vague(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Adt(_, args) | Self::Tuple(args) => args.iter().any(Self::is_vague),
            Self::Ref(inner) | Self::Ptr(inner) | Self::Slice(inner) | Self::Array(inner) => inner.is_vague(),
            Self::Assoc(base, ..) => base.is_vague(),
            Self::Prim(prim) => matches!(prim, Prim::Int | Prim::Float),
            _ => false,
        }
    }

    /// Removes references.
    pub fn strip(&self) -> &Self {
        let mut ty = self;
        while let Self::Ref(inner) = ty {
            ty = inner;
        }
        ty
    }

    /// Tells how deeply types are nested, to stop runaway growth.
    pub fn depth(&self) -> usize {
        1 + match self {
            Self::Adt(_, args) | Self::Tuple(args) => args.iter().map(Self::depth).max().unwrap_or(0),
            Self::Ref(inner) | Self::Ptr(inner) | Self::Slice(inner) | Self::Array(inner) => inner.depth(),
            Self::Assoc(base, ..) => base.depth(),
            Self::FnPointer(params, ret) => params.iter().map(Self::depth).max().unwrap_or(0).max(ret.depth()),
            Self::Bounded(bounds) => bounds
                .iter()
                .map(|bound| match bound {
                    Bound::Trait { args, bindings, .. } => args
                        .iter()
                        .chain(bindings.iter().map(|(_, ty)| ty))
                        .map(Self::depth)
                        .max()
                        .unwrap_or(0),
                    Bound::Fn(params, ret) => params.iter().map(Self::depth).max().unwrap_or(0).max(ret.depth()),
                })
                .max()
                .unwrap_or(0),
            _ => 0,
        }
    }

    /// Replaces generic parameters.
    pub fn substitute(&self, subst: &Subst) -> Self {
        let many = |all: &Arc<[Self]>| -> Arc<[Self]> { all.iter().map(|ty| ty.substitute(subst)).collect() };
        match self {
            Self::Param(owner, index) => subst.get(*owner, *index).cloned().unwrap_or_else(|| self.clone()),
            Self::SelfOf(of) => subst.get(*of, SELF).cloned().unwrap_or_else(|| self.clone()),
            Self::Adt(gid, args) => Self::Adt(*gid, many(args)),
            Self::Tuple(args) => Self::Tuple(many(args)),
            Self::Ref(inner) => Self::Ref(Arc::new(inner.substitute(subst))),
            Self::Ptr(inner) => Self::Ptr(Arc::new(inner.substitute(subst))),
            Self::Slice(inner) => Self::Slice(Arc::new(inner.substitute(subst))),
            Self::Array(inner) => Self::Array(Arc::new(inner.substitute(subst))),
            Self::FnPointer(params, ret) => Self::FnPointer(many(params), Arc::new(ret.substitute(subst))),
            Self::Assoc(base, of, name) => Self::Assoc(Arc::new(base.substitute(subst)), *of, Arc::clone(name)),
            Self::Bounded(bounds) => Self::Bounded(bounds.iter().map(|bound| bound.substitute(subst)).collect()),
            Self::Fn(gid, own) => Self::Fn(*gid, Arc::new(own.substitute(subst))),
            Self::Constructor(gid, own) => Self::Constructor(*gid, Arc::new(own.substitute(subst))),
            Self::Unknown | Self::Never | Self::Prim(_) | Self::Closure(..) => self.clone(),
        }
    }
}

impl Subst {
    fn substitute(&self, subst: &Self) -> Self {
        Self(self.0.iter().map(|(key, ty)| (*key, ty.substitute(subst))).collect())
    }
}

impl Bound {
    /// Replaces generic parameters.
    pub fn substitute(&self, subst: &Subst) -> Self {
        match self {
            Self::Trait { of, args, bindings } => Self::Trait {
                of: *of,
                args: args.iter().map(|ty| ty.substitute(subst)).collect(),
                bindings: bindings
                    .iter()
                    .map(|(name, ty)| (Arc::clone(name), ty.substitute(subst)))
                    .collect(),
            },
            Self::Fn(params, ret) => Self::Fn(
                params.iter().map(|ty| ty.substitute(subst)).collect(),
                Arc::new(ret.substitute(subst)),
            ),
        }
    }
}

/// Fits `pattern`, whose parameters of the owners in `open` may be bound, to `ty`. Returns false on a contradiction;
/// what is not known fits everything.
pub fn unify(pattern: &Ty, ty: &Ty, open: &[Gid], subst: &mut Subst) -> bool {
    match (pattern, ty) {
        (Ty::Param(owner, index), _) if open.contains(owner) => {
            if let Some(known) = subst.get(*owner, *index).cloned()
                && !known.is_vague()
            {
                return known.strip() == ty.strip() || compatible(known.strip(), ty.strip());
            }
            subst.set(*owner, *index, ty.clone());
            true
        }
        (Ty::SelfOf(of), _) if open.contains(of) => {
            subst.set(*of, SELF, ty.clone());
            true
        }
        (Ty::Unknown, _) | (_, Ty::Unknown) | (Ty::Never, _) | (_, Ty::Never) => true,
        (Ty::Adt(a, some), Ty::Adt(b, others)) => a == b && all(some, others, open, subst),
        (Ty::Tuple(some), Ty::Tuple(others)) => some.len() == others.len() && all(some, others, open, subst),
        (Ty::Ref(a), Ty::Ref(b))
        | (Ty::Ptr(a), Ty::Ptr(b))
        | (Ty::Slice(a), Ty::Slice(b))
        | (Ty::Array(a), Ty::Array(b)) => unify(a, b, open, subst),
        // A reference to an array or vector is taken where a slice is wanted.
        (Ty::Slice(a), Ty::Array(b)) => unify(a, b, open, subst),
        (Ty::Prim(a), Ty::Prim(b)) => {
            a == b
                || (*a == Prim::Int && b.is_integer())
                || (*b == Prim::Int && a.is_integer())
                || matches!(
                    (a, b),
                    (Prim::Float, Prim::F32 | Prim::F64) | (Prim::F32 | Prim::F64, Prim::Float)
                )
        }
        (Ty::FnPointer(some, a), Ty::FnPointer(others, b)) => {
            some.len() == others.len() && all(some, others, open, subst) && unify(a, b, open, subst)
        }
        (Ty::FnPointer(..), Ty::Fn(..) | Ty::Closure(..) | Ty::Constructor(..)) => true,
        (Ty::Assoc(a, _, some), Ty::Assoc(b, _, other)) => some == other && unify(a, b, open, subst),
        (Ty::Assoc(..), _) | (_, Ty::Assoc(..)) | (Ty::Bounded(_), _) => true,
        (Ty::Param(a, i), Ty::Param(b, j)) => a == b && i == j,
        (Ty::SelfOf(a), Ty::SelfOf(b)) => a == b,
        _ => false,
    }
}

fn all(some: &[Ty], others: &[Ty], open: &[Gid], subst: &mut Subst) -> bool {
    some.iter().zip(others).all(|(a, b)| unify(a, b, open, subst))
}

fn compatible(a: &Ty, b: &Ty) -> bool {
    unify(a, b, &[], &mut Subst::default()) || unify(b, a, &[], &mut Subst::default())
}

/// Fits an argument to a parameter as a call does: references may be added or removed.
pub fn unify_argument(pattern: &Ty, ty: &Ty, open: &[Gid], subst: &mut Subst) -> bool {
    match (pattern, ty) {
        (Ty::Param(owner, _), _) if open.contains(owner) => unify(pattern, ty, open, subst),
        (Ty::Ref(a), Ty::Ref(b)) => unify_argument(a, b, open, subst),
        (Ty::Ref(a), b) => unify_argument(a, b, open, subst),
        (a, Ty::Ref(b)) => unify_argument(a, b, open, subst),
        (a, b) => unify(a, b, open, subst),
    }
}

/// Joins what two views of one type know.
pub fn merge(a: &Ty, b: &Ty) -> Ty {
    let many =
        |some: &Arc<[Ty]>, others: &Arc<[Ty]>| some.iter().zip(others.iter()).map(|(a, b)| merge(a, b)).collect();
    match (a, b) {
        (Ty::Unknown | Ty::Never, other) => other.clone(),
        (Ty::Prim(Prim::Int | Prim::Float), Ty::Prim(_)) => b.clone(),
        (Ty::Adt(x, some), Ty::Adt(y, others)) if x == y && some.len() == others.len() => {
            Ty::Adt(*x, many(some, others))
        }
        (Ty::Tuple(some), Ty::Tuple(others)) if some.len() == others.len() => Ty::Tuple(many(some, others)),
        (Ty::Ref(x), Ty::Ref(y)) => Ty::Ref(Arc::new(merge(x, y))),
        (Ty::Slice(x), Ty::Slice(y)) => Ty::Slice(Arc::new(merge(x, y))),
        (Ty::Array(x), Ty::Array(y)) => Ty::Array(Arc::new(merge(x, y))),
        _ => a.clone(),
    }
}

/// What implementations of a type are found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Head {
    /// A struct, enum or union.
    Adt(Gid),
    /// A primitive type; all integers literals may be any of them.
    Prim(Prim),
    /// A slice.
    Slice,
    /// An array.
    Array,
    /// A tuple of so many.
    Tuple(usize),
    /// A reference.
    Ref,
    /// A pointer.
    Ptr,
    /// Functions, closures, function pointers.
    Fn,
    /// A trait object, by its first trait.
    Bounded(Gid),
    /// `!`.
    Never,
    /// A parameter: fits everything its bounds allow.
    Any,
}

/// Returns the head of a type; none if nothing is known.
pub fn head(ty: &Ty) -> Option<Head> {
    Some(match ty {
        Ty::Adt(gid, _) => Head::Adt(*gid),
        Ty::Prim(prim) => Head::Prim(*prim),
        Ty::Slice(_) => Head::Slice,
        Ty::Array(_) => Head::Array,
        Ty::Tuple(all) => Head::Tuple(all.len()),
        Ty::Ref(_) => Head::Ref,
        Ty::Ptr(_) => Head::Ptr,
        Ty::Fn(..) | Ty::Constructor(..) | Ty::FnPointer(..) | Ty::Closure(..) => Head::Fn,
        Ty::Bounded(bounds) => bounds.iter().find_map(|bound| match bound {
            Bound::Trait { of, .. } => Some(Head::Bounded(*of)),
            Bound::Fn(..) => None,
        })?,
        Ty::Never => Head::Never,
        Ty::Param(..) | Ty::SelfOf(_) | Ty::Assoc(..) => Head::Any,
        Ty::Unknown => return None,
    })
}
