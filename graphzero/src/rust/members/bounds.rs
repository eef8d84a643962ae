//! Bounds: what is written of type parameters, `impl Trait`, `dyn Trait` and associated types.

use super::*;

impl RustResolver {
    /// Returns the supertraits of a trait, `where Self: …` included.
    pub fn supertraits(&self, of: Gid) -> Vec<Bound> {
        let mut all = match &self.item(of).kind {
            ItemKind::Trait { supers } => self.lower_bounds(of.file, supers, 0),
            _ => Vec::new(),
        };
        if let Some(generics) = &self.item(of).generics {
            for (subject, bounds) in &generics.wheres {
                if self.is_subject(of.file, *subject, &Ty::SelfOf(of)) {
                    all.extend(self.lower_bounds(of.file, bounds, 0));
                }
            }
        }
        all
    }

    /// Returns the bounds that a type is known by: those of a parameter, of `Self`, of an associated type.
    pub fn bounds_of(&self, ty: &Ty) -> Vec<Bound> {
        match ty {
            Ty::Bounded(bounds) => bounds.to_vec(),
            Ty::SelfOf(of) => {
                let count = self.item(*of).generics.as_ref().map_or(0, |g| g.params.len());
                let args = (0..count).map(|i| Ty::Param(*of, i as u16)).collect();
                vec![Bound::Trait {
                    of: *of,
                    args,
                    bindings: Arc::new([]),
                }]
            }
            Ty::Param(owner, index) => {
                let mut all = Vec::new();
                let Some(generics) = &self.item(*owner).generics else {
                    return all;
                };
                if let Some(param) = generics.params.get(*index as usize) {
                    all.extend(self.lower_bounds(owner.file, &param.bounds, 0));
                }
                all.extend(self.where_bounds(*owner, ty));
                // Members of an implementation may bound its parameters further; they are found by the caller.
                all
            }
            Ty::Assoc(base, of, name) => {
                let mut all = Vec::new();
                let traits: Vec<Gid> = match of {
                    Some(of) => vec![*of],
                    None => self.traits_of(base),
                };
                for of in traits {
                    for gid in self.trait_member(of, name, Ns::Type, 0) {
                        if let ItemKind::Alias { bounds, .. } = &self.item(gid).kind {
                            let mut subst = Subst::default();
                            if let Some(of) = self.container(gid) {
                                subst.set(of, SELF, (**base).clone());
                            }
                            all.extend(
                                self.lower_bounds(gid.file, bounds, 0)
                                    .iter()
                                    .map(|b| b.substitute(&subst)),
                            );
                        }
                    }
                }
                let mut owner = &**base;
                while let Ty::Assoc(inner, ..) = owner {
                    owner = inner;
                }
                if let Ty::Param(owner, _) = owner {
                    all.extend(self.where_bounds(*owner, ty));
                }
                all
            }
            _ => Vec::new(),
        }
    }

    /// Returns the bounds that the `where` clauses of an item, and of what it lies in, put on a type.
    pub(super) fn where_bounds(&self, owner: Gid, ty: &Ty) -> Vec<Bound> {
        let mut all = Vec::new();
        if let Some(generics) = &self.item(owner).generics {
            for (subject, bounds) in &generics.wheres {
                if self.is_subject(owner.file, *subject, ty) {
                    all.extend(self.lower_bounds(owner.file, bounds, 0));
                }
            }
        }
        all
    }

    /// Tells whether the subject of a `where` clause, or of another place that bounds a type, is a type. What an
    /// associated type stands for is not asked, because that would ask for these very bounds.
    pub(super) fn is_subject(&self, file: u32, id: u32, ty: &Ty) -> bool {
        match (self.code(file).types.get(id as usize), ty) {
            (Some(TypeRef::SelfType(scope)), _) => self.self_type(file, *scope) == *ty,
            (Some(TypeRef::Path(id)), _) => self.is_path_subject(file, *id, ty),
            (Some(TypeRef::Ref(inner) | TypeRef::RefMut(inner)), Ty::Ref(ty)) => self.is_subject(file, *inner, ty),
            _ => false,
        }
    }

    pub(super) fn is_path_subject(&self, file: u32, id: UseId, ty: &Ty) -> bool {
        let Some(Link::Path { base, scope, .. }) = self.code(file).links.get(id as usize).copied() else {
            return false;
        };
        match (base, ty) {
            (Base::Lexical, Ty::Param(owner, index)) => {
                self.resolve_use(file, id).first() == Some(&Entity::Param(*owner, *index))
            }
            (Base::Lexical | Base::Crate | Base::Module(_) | Base::Root, _) => false,
            (base, Ty::Assoc(inner, _, name)) => {
                let own = self.facts(file).name(self.facts(file).uses[id as usize].name);
                own == &**name
                    && match base {
                        Base::SelfType => self.self_type(file, scope) == **inner,
                        Base::Use(of) => self.is_path_subject(file, of, inner),
                        Base::Type(of) => match self.code(file).types.get(of as usize) {
                            Some(TypeRef::Qualified { ty, .. }) => self.is_subject(file, *ty, inner),
                            _ => false,
                        },
                        _ => false,
                    }
            }
            _ => false,
        }
    }

    pub(super) fn traits_of(&self, ty: &Ty) -> Vec<Gid> {
        self.bounds_of(ty)
            .into_iter()
            .filter_map(|bound| match bound {
                Bound::Trait { of, .. } => Some(of),
                Bound::Fn(..) => None,
            })
            .collect()
    }

    /// Tells whether the bounds of an implementation's parameters hold for what they stand for, as far as traits of the
    /// tree are concerned.
    pub(super) fn bounds_hold(&self, container: Gid, subst: &Subst, depth: usize) -> bool {
        if depth >= MAX_DEPTH {
            return true;
        }
        let Some(generics) = &self.item(container).generics else {
            return true;
        };
        (0..generics.params.len() as u16).all(|index| {
            // Of what a literal may be, any type may be meant; a type with unknown arguments is known by its name.
            let open = |ty: &Ty| matches!(ty.strip(), Ty::Unknown | Ty::Prim(Prim::Int | Prim::Float));
            let Some(ty) = subst.get(container, index).filter(|ty| !open(ty)) else {
                return true;
            };
            self.bounds_of(&Ty::Param(container, index))
                .iter()
                .all(|bound| match bound {
                    Bound::Trait { of, .. } if of.file < self.external => self.implements(ty, *of, depth + 1),
                    _ => true,
                })
        })
    }

    pub(super) fn bounds_imply(&self, bounds: &[Bound], of: Gid, depth: usize) -> bool {
        depth < MAX_DEPTH
            && bounds.iter().any(|bound| match bound {
                Bound::Trait { of: other, .. } => {
                    *other == of || self.bounds_imply(&self.supertraits(*other), of, depth + 1)
                }
                Bound::Fn(..) => false,
            })
    }

    /// Returns bounds that the methods of an implementation add to its parameters. Which method is asking is not known
    /// here, so all of them count.
    pub(super) fn inner_bounds(&self, owner: Gid, ty: &Ty) -> Vec<Bound> {
        let mut all = Vec::new();
        let facts = self.facts(owner.file);
        for (def, entry) in facts.defs.iter().enumerate().skip(owner.def as usize + 1) {
            if entry.at.start > self.def(owner).full.end {
                break;
            }
            if entry.container == owner.def {
                all.extend(self.where_bounds(
                    Gid {
                        file: owner.file,
                        def: def as DefId,
                    },
                    ty,
                ));
            }
        }
        all
    }
}
