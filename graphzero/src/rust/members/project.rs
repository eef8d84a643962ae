//! Associated types: what `<T as Trait>::Name` comes to.

use super::*;

impl RustResolver {
    /// Returns what an associated type stands for, or the type itself if that is not known.
    pub fn normalize(&self, ty: &Ty) -> Ty {
        self.normalize_at(ty, 0)
    }

    pub(super) fn normalize_at(&self, ty: &Ty, depth: usize) -> Ty {
        if depth > MAX_DEPTH || ty.depth() > 24 {
            return Ty::Unknown;
        }
        let many = |all: &Arc<[Ty]>| -> Arc<[Ty]> { all.iter().map(|ty| self.normalize_at(ty, depth + 1)).collect() };
        match ty {
            Ty::Assoc(base, of, name) => {
                let base = self.normalize_at(base, depth + 1);
                if base.is_unknown() {
                    return Ty::Unknown;
                }
                let found = self.project(&base, *of, name, depth + 1);
                found.unwrap_or_else(|| Ty::Assoc(Arc::new(base), *of, Arc::clone(name)))
            }
            Ty::Adt(gid, args) => Ty::Adt(*gid, many(args)),
            Ty::Tuple(all) => Ty::Tuple(many(all)),
            Ty::Ref(inner) => Ty::Ref(Arc::new(self.normalize_at(inner, depth + 1))),
            Ty::Slice(inner) => Ty::Slice(Arc::new(self.normalize_at(inner, depth + 1))),
            Ty::Array(inner) => Ty::Array(Arc::new(self.normalize_at(inner, depth + 1))),
            _ => ty.clone(),
        }
    }

    /// Finds an associated type of a base.
    pub(super) fn project(&self, base: &Ty, of: Option<Gid>, name: &str, depth: usize) -> Option<Ty> {
        let _level = Level::enter()?;
        // What a bound says outright.
        let bounds = self.bounds_of(base);
        if let Some(ty) = self.binding(&bounds, of, name, 0) {
            return Some(self.normalize_at(&ty, depth + 1));
        }
        if matches!(base, Ty::Bounded(_) | Ty::SelfOf(_)) {
            return None;
        }
        let traits = match of {
            Some(of) => vec![of],
            None => self.named(name).declared.iter().map(|(of, _)| *of).collect(),
        };
        for of in traits {
            let Some((container, mut subst)) = self.impl_for(base, of, depth) else {
                continue;
            };
            // Parameters that only bounds name (`impl<'a, I: Iterator<Item = &'a T>, T> … for Copied<I>`).
            let count = self.item(container).generics.as_ref().map_or(0, |g| g.params.len());
            if (0..count as u16).any(|index| subst.get(container, index).is_none()) {
                self.learn_bounds(container, &[container], &mut subst);
            }
            for gid in self.inside(container, name, |kind| kind == Kind::AssociatedType) {
                if let ItemKind::Alias { ty, .. } = self.item(gid).kind
                    && ty != NONE
                {
                    return Some(self.normalize_at(&self.lower_type(gid.file, ty).substitute(&subst), depth + 1));
                }
            }
        }
        None
    }

    pub(super) fn binding(&self, bounds: &[Bound], of: Option<Gid>, name: &str, depth: usize) -> Option<Ty> {
        if depth > 4 {
            return None;
        }
        for bound in bounds {
            let Bound::Trait {
                of: found,
                args,
                bindings,
            } = bound
            else {
                continue;
            };
            if of.is_none_or(|of| of == *found || self.is_iterator_pair(of, *found))
                && let Some((_, ty)) = bindings.iter().find(|(n, _)| &**n == name)
            {
                return Some(ty.clone());
            }
            let mut subst = Subst::default();
            for (index, arg) in args.iter().enumerate() {
                subst.set(*found, index as u16, arg.clone());
            }
            let supers: Vec<Bound> = self.supertraits(*found).iter().map(|b| b.substitute(&subst)).collect();
            if let Some(ty) = self.binding(&supers, of, name, depth + 1) {
                return Some(ty);
            }
        }
        None
    }

    /// `IntoIterator::Item` of an iterator is its `Item`.
    pub(super) fn is_iterator_pair(&self, of: Gid, found: Gid) -> bool {
        of.file >= self.external
            && found.file >= self.external
            && self.name(of) == "IntoIterator"
            && self.name(found) == "Iterator"
    }
}
