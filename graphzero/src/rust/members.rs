//! Members of types: implementations, traits, bounds, dereferencing, fields and associated types.

mod bounds;
mod project;

use std::collections::HashMap;
use std::sync::Arc;

use super::code::{Base, ItemKind, Link, Ns, Prim, Receiver, TypeRef};
use super::infer::Level;
use super::lookup::Entity;
use super::resolver::RustResolver;
use super::ty::{Bound, Gid, Head, SELF, Subst, Ty, head, unify};
use crate::facts::{DefId, Kind, NONE, UseId};

/// What an implementation is for.
#[derive(Clone, Debug)]
pub struct ImplInfo {
    /// The type.
    pub ty: Ty,
    /// The trait with its type arguments.
    pub of: Option<(Gid, Arc<[Ty]>)>,
}

/// Members of one name, by what they belong to.
#[derive(Debug, Default)]
pub struct NamedMembers {
    /// In implementations without a trait.
    inherent: HashMap<Head, Vec<(Gid, Gid)>>,
    /// In implementations of traits.
    traits: HashMap<Head, Vec<(Gid, Gid)>>,
    /// In traits.
    declared: Vec<(Gid, Gid)>,
}

/// A member that was found.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its definition.
    pub gid: Gid,
    /// What generic parameters of its implementation or trait stand for.
    pub subst: Subst,
}

/// How deeply questions about traits may lead to others.
const MAX_DEPTH: usize = 8;

impl RustResolver {
    /// Returns what an implementation is for.
    pub fn impl_info(&self, gid: Gid) -> Arc<ImplInfo> {
        if let Some(known) = self.impls.get(&gid) {
            return known;
        }
        let ItemKind::Impl { ty, of } = self.item(gid).kind else {
            return Arc::new(ImplInfo {
                ty: Ty::Unknown,
                of: None,
            });
        };
        let of = if of == NONE {
            None
        } else {
            self.lower_bounds(gid.file, &[of], 0)
                .into_iter()
                .find_map(|bound| match bound {
                    Bound::Trait { of, args, .. } => Some((of, args)),
                    Bound::Fn(..) => None,
                })
        };
        let info = Arc::new(ImplInfo {
            ty: self.lower_type(gid.file, ty),
            of,
        });
        self.impls.set(gid, Arc::clone(&info));
        info
    }

    /// Returns the members of a name.
    pub fn named(&self, name: &str) -> Arc<NamedMembers> {
        if let Some(known) = self.members.get(&Box::from(name)) {
            return known;
        }
        let mut found = NamedMembers::default();
        for file in 0..self.files.len() as u32 {
            let facts = self.facts(file);
            let Some(id) = facts.name_id(name) else { continue };
            for (def, entry) in facts.defs.iter().enumerate() {
                if entry.name != id || matches!(entry.kind, Kind::Field | Kind::EnumMember | Kind::Impl) {
                    continue;
                }
                let member = Gid {
                    file,
                    def: def as DefId,
                };
                let Some(container) = self.container(member) else {
                    continue;
                };
                match self.def(container).kind {
                    Kind::Trait => found.declared.push((container, member)),
                    Kind::Impl => {
                        let info = self.impl_info(container);
                        let Some(head) = head(&info.ty) else { continue };
                        let is_trait = !matches!(self.item(container).kind, ItemKind::Impl { of: NONE, .. });
                        let map = if is_trait {
                            &mut found.traits
                        } else {
                            &mut found.inherent
                        };
                        map.entry(head).or_default().push((container, member));
                    }
                    _ => {}
                }
            }
        }
        let found = Arc::new(found);
        self.members.set(name.into(), Arc::clone(&found));
        found
    }

    /// Looks a member up in bounds and their supertraits.
    fn in_bounds(&self, ty: &Ty, bounds: &[Bound], name: &str, ns: Ns, depth: usize) -> Vec<Member> {
        let mut found: Vec<Member> = Vec::new();
        if depth > MAX_DEPTH {
            return found;
        }
        for bound in bounds {
            let Bound::Trait { of, args, .. } = bound else { continue };
            let mut subst = Subst::default();
            subst.set(*of, SELF, ty.clone());
            for (index, arg) in args.iter().enumerate() {
                subst.set(*of, index as u16, arg.clone());
            }
            let own = self.inside(*of, name, |kind| fits(kind, ns));
            if own.is_empty() {
                let supers: Vec<Bound> = self.supertraits(*of).iter().map(|b| b.substitute(&subst)).collect();
                let inner = self.in_bounds(ty, &supers, name, ns, depth + 1);
                found.extend(
                    inner
                        .into_iter()
                        .filter(|m| !found.iter().any(|f| f.gid == m.gid))
                        .collect::<Vec<_>>(),
                );
                continue;
            }
            for gid in own {
                if !found.iter().any(|member| member.gid == gid) {
                    found.push(Member {
                        gid,
                        subst: subst.clone(),
                    });
                }
            }
        }
        found
    }

    /// Looks a member up in implementations for a concrete type.
    fn in_impls(&self, ty: &Ty, named: &NamedMembers, inherent: bool, ns: Ns, depth: usize) -> Vec<Member> {
        let Some(own) = head(ty) else { return Vec::new() };
        let map = if inherent { &named.inherent } else { &named.traits };
        let mut found: Vec<Member> = Vec::new();
        let mut heads = vec![own];
        if let Head::Prim(prim) = own
            && matches!(prim, Prim::Int)
        {
            heads.extend([Prim::I32, Prim::Usize, Prim::U32, Prim::U64, Prim::I64, Prim::U8].map(Head::Prim));
        }
        for head in heads {
            for &(container, gid) in map.get(&head).into_iter().flatten() {
                if !fits(self.def(gid).kind, ns) {
                    continue;
                }
                let mut subst = Subst::default();
                if unify(&self.impl_info(container).ty, ty, &[container], &mut subst)
                    && (inherent || self.bounds_hold(container, &subst, depth))
                {
                    found.push(Member { gid, subst });
                }
            }
            if !found.is_empty() {
                break;
            }
        }
        if found.is_empty() && !inherent && depth < MAX_DEPTH {
            for &(container, gid) in map.get(&Head::Any).into_iter().flatten() {
                if fits(self.def(gid).kind, ns) && self.blanket_fits(container, ty, depth + 1) {
                    let mut subst = Subst::default();
                    unify(&self.impl_info(container).ty, ty, &[container], &mut subst);
                    found.push(Member { gid, subst });
                }
            }
        }
        found
    }

    /// Tells whether a blanket implementation's bounds hold for a type.
    fn blanket_fits(&self, container: Gid, ty: &Ty, depth: usize) -> bool {
        let info = self.impl_info(container);
        let Ty::Param(owner, index) = info.ty else { return false };
        let bounds = self.bounds_of(&Ty::Param(owner, index));
        bounds.iter().all(|bound| match bound {
            Bound::Trait { of, .. } => self.implements(ty, *of, depth + 1),
            Bound::Fn(..) => matches!(head(ty), Some(Head::Fn)),
        })
    }

    /// Tells whether a type implements a trait, as far as the tree and the model of the standard library tell.
    pub fn implements(&self, ty: &Ty, of: Gid, depth: usize) -> bool {
        if depth > MAX_DEPTH || ty.is_unknown() {
            return false;
        }
        let bounds = self.bounds_of(ty);
        if !bounds.is_empty() {
            if self.bounds_imply(&bounds, of, 0) {
                return true;
            }
            if matches!(ty, Ty::Bounded(_)) {
                return false;
            }
        }
        if self.impl_for(ty, of, depth).is_some() {
            return true;
        }
        // Marker and derivable traits have no implementation to be seen, and of the standard library's own types little
        // is written down.
        const SILENT: &[&str] = &[
            "Clone",
            "Copy",
            "Debug",
            "Send",
            "Sync",
            "Sized",
            "PartialEq",
            "Eq",
            "Hash",
            "PartialOrd",
            "Ord",
            "Default",
            "Unpin",
            "Any",
            "ToOwned",
        ];
        of.file >= self.external && (matches!(ty, Ty::Prim(_)) || SILENT.contains(&self.name(of)))
    }

    /// Returns the implementation of a trait for a type, with what its parameters stand for.
    pub fn impl_for(&self, ty: &Ty, of: Gid, depth: usize) -> Option<(Gid, Subst)> {
        let _level = Level::enter()?;
        let own = head(ty)?;
        let mut blanket = None;
        for &gid in self.impls_named(self.name(of)) {
            let info = self.impl_info(gid);
            if info.of.as_ref().is_none_or(|(found, _)| *found != of) {
                continue;
            }
            match head(&info.ty) {
                Some(Head::Any) => {
                    #[allow(clippy::collapsible_match)] // the question about bounds is costly and comes last
                    if blanket.is_none() && depth < MAX_DEPTH && self.blanket_fits(gid, ty, depth + 1) {
                        let mut subst = Subst::default();
                        unify(&info.ty, ty, &[gid], &mut subst);
                        blanket = Some((gid, subst));
                    }
                }
                Some(head) if head == own => {
                    let mut subst = Subst::default();
                    if unify(&info.ty, ty, &[gid], &mut subst) && self.bounds_hold(gid, &subst, depth) {
                        return Some((gid, subst));
                    }
                }
                _ => {}
            }
        }
        blanket
    }

    /// Returns the implementation of a trait for `&mut T`, if `T` has one.
    pub fn mutable_impl(&self, ty: &Ty, of: Gid) -> Option<Gid> {
        let _level = Level::enter()?;
        let ty = ty.clone().reference();
        self.impls_named(self.name(of)).iter().copied().find(|&gid| {
            let ItemKind::Impl { ty: written, .. } = self.item(gid).kind else {
                return false;
            };
            let mut subst = Subst::default();
            matches!(
                self.code(gid.file).types.get(written as usize),
                Some(TypeRef::RefMut(_))
            ) && self.impl_info(gid).of.as_ref().is_some_and(|(found, _)| *found == of)
                && unify(&self.impl_info(gid).ty, &ty, &[gid], &mut subst)
                && self.bounds_hold(gid, &subst, 0)
        })
    }

    /// Returns the implementations of traits that are written with a name.
    fn impls_named(&self, name: &str) -> &[Gid] {
        let all = self.trait_impls.get_or_init(|| {
            let mut all: HashMap<Box<str>, Vec<Gid>> = HashMap::new();
            for file in 0..self.files.len() as u32 {
                for (def, item) in self.code(file).items.iter().enumerate() {
                    if let ItemKind::Impl { of, .. } = item.kind
                        && of != NONE
                    {
                        let gid = Gid {
                            file,
                            def: def as DefId,
                        };
                        if let Some(name) = self.written_name(file, of) {
                            all.entry(name.into()).or_default().push(gid);
                        }
                    }
                }
            }
            all
        });
        all.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn written_name(&self, file: u32, ty: u32) -> Option<&str> {
        match self.code(file).types.get(ty as usize)? {
            TypeRef::Path(id) => Some(self.facts(file).name(self.facts(file).uses[*id as usize].name)),
            _ => None,
        }
    }

    /// Returns the members of one name that a type has at one step of dereferencing.
    fn at_step(&self, ty: &Ty, name: &str, ns: Ns) -> Vec<Member> {
        let Some(_level) = Level::enter() else {
            return Vec::new();
        };
        let named = self.named(name);
        if matches!(ty, Ty::Param(..) | Ty::SelfOf(_) | Ty::Assoc(..) | Ty::Bounded(_)) {
            let mut bounds = self.bounds_of(ty);
            if let Ty::Bounded(_) = ty {
                // `impl dyn Trait` has members of its own.
                let own = self.in_impls(ty, &named, true, ns, 0);
                if !own.is_empty() {
                    return own;
                }
            }
            if let Ty::Param(owner, _) = ty {
                bounds.extend(self.inner_bounds(*owner, ty));
            }
            let found = self.in_bounds(ty, &bounds, name, ns, 0);
            if !found.is_empty() {
                return found;
            }
            return self.in_impls(ty, &named, false, ns, 0);
        }
        let own = self.in_impls(ty, &named, true, ns, 0);
        if !own.is_empty() {
            return own;
        }
        let implemented = self.in_impls(ty, &named, false, ns, 0);
        if !implemented.is_empty() {
            return implemented;
        }
        // Members with a default body in a trait that the type implements.
        named
            .declared
            .iter()
            .filter(|(_, gid)| fits(self.def(*gid).kind, ns))
            .filter_map(|&(of, gid)| {
                let (container, found) = self.impl_for(ty, of, 0)?;
                let mut subst = Subst::default();
                subst.set(of, SELF, ty.clone());
                if let Some((_, args)) = &self.impl_info(container).of {
                    for (index, arg) in args.iter().enumerate() {
                        subst.set(of, index as u16, arg.substitute(&found));
                    }
                }
                Some(Member { gid, subst })
            })
            .collect()
    }

    /// Returns the methods of a name that a value of a type has, at the first step of dereferencing that has any.
    pub fn method(&self, ty: &Ty, name: &str) -> Vec<Member> {
        let mut step = ty.clone();
        for _ in 0..MAX_DEPTH {
            if step.is_unknown() {
                return Vec::new();
            }
            let stripped = step.strip().clone();
            let mut found = self.at_step(&stripped, name, Ns::Value);
            if found.is_empty() && matches!(step, Ty::Ref(_)) {
                found = self.at_step(&Ty::Ref(Arc::new(stripped.clone())), name, Ns::Value);
            }
            if found.is_empty() && !matches!(step, Ty::Ref(_)) {
                // A method that takes `self` of an implementation for `&T`.
                found = self.at_step(&Ty::Ref(Arc::new(stripped.clone())), name, Ns::Value);
            }
            // What takes no receiver is not called behind a dot.
            found.retain(|member| {
                !matches!(&self.item(member.gid).kind, ItemKind::Fn { receiver, .. } if *receiver == Receiver::None)
            });
            if !found.is_empty() {
                return found;
            }
            match self.dereference(&stripped) {
                Some(inner) => step = inner,
                None => return Vec::new(),
            }
        }
        Vec::new()
    }

    /// Returns what a value dereferences to, without references; arrays read as slices.
    pub fn dereference(&self, ty: &Ty) -> Option<Ty> {
        match ty {
            Ty::Ref(inner) | Ty::Ptr(inner) => Some((**inner).clone()),
            Ty::Array(inner) => Some(Ty::Slice(Arc::clone(inner))),
            Ty::Adt(..) | Ty::Param(..) | Ty::Assoc(..) | Ty::Bounded(_) => {
                let of = self.std("Deref")?;
                let target = self.normalize(&Ty::Assoc(Arc::new(ty.clone()), Some(of), "Target".into()));
                (!matches!(target, Ty::Unknown | Ty::Assoc(..))).then_some(target)
            }
            _ => None,
        }
    }

    /// Returns what a name means behind a type in a path.
    pub fn associated(&self, ty: &Ty, name: &str, ns: Ns) -> Vec<Member> {
        if let Ty::Assoc(inner, Some(of), empty) = ty
            && empty.is_empty()
        {
            // `<T as Trait>::name`.
            let own = matches!(**inner, Ty::Adt(gid, _) if gid.file < self.external);
            if of.file >= self.external && !own && ns != Ns::Type {
                // Which of the library's implementations is meant does not matter here.
                return Vec::new();
            }
            if let Some((container, subst)) = self.impl_for(inner, *of, 0) {
                let own = self.inside(container, name, |kind| fits(kind, ns));
                if !own.is_empty() {
                    return own
                        .into_iter()
                        .map(|gid| Member {
                            gid,
                            subst: subst.clone(),
                        })
                        .collect();
                }
            }
            let mut subst = Subst::default();
            subst.set(*of, SELF, (**inner).clone());
            return self
                .trait_member(*of, name, ns, 0)
                .into_iter()
                .map(|gid| Member {
                    gid,
                    subst: subst.clone(),
                })
                .collect();
        }
        let found = self.at_step(ty, name, ns);
        if !found.is_empty() || !matches!(ty, Ty::Adt(..) | Ty::Prim(_)) {
            return found;
        }
        Vec::new()
    }

    /// Returns the fields of a name that a value of a type has.
    pub fn field(&self, ty: &Ty, name: &str) -> Vec<Gid> {
        let mut step = ty.strip().clone();
        for _ in 0..MAX_DEPTH {
            if let Ty::Adt(gid, _) = &step {
                let found = self.inside(*gid, name, |kind| kind == Kind::Field);
                if !found.is_empty() {
                    return found;
                }
            }
            match self.dereference(&step) {
                Some(inner) => step = inner.strip().clone(),
                None => break,
            }
        }
        Vec::new()
    }
}

/// Tells whether a member of a kind is what a namespace asks for.
fn fits(kind: Kind, ns: Ns) -> bool {
    match ns {
        Ns::Type => kind == Kind::AssociatedType,
        Ns::Value => matches!(
            kind,
            Kind::Method
                | Kind::StaticMethod
                | Kind::TraitMethod
                | Kind::Function
                | Kind::Constant
                | Kind::StaticVariable
        ),
        Ns::Macro => false,
        Ns::Any | Ns::Argument => kind != Kind::Impl,
    }
}
