//! Parts of values: fields, elements, results of operators, what patterns bind.

use std::sync::Arc;

use super::*;

impl RustResolver {
    pub(super) fn field_type(&self, file: u32, recv: ExprId, name: &str) -> Ty {
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

    pub(super) fn tuple_field(&self, ty: &Ty, index: u32) -> Ty {
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

    pub(super) fn index(&self, file: u32, recv: ExprId, index: ExprId) -> Ty {
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

    pub(super) fn binary(&self, file: u32, left: ExprId, right: ExprId) -> Ty {
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
    pub(super) fn unwrapped(&self, ty: &Ty) -> Ty {
        match ty.strip() {
            Ty::Adt(gid, args) if matches!(self.name(*gid), "Result" | "Option" | "Poll") => {
                args.first().cloned().unwrap_or(Ty::Unknown)
            }
            _ => Ty::Unknown,
        }
    }

    pub(super) fn element(&self, ty: &Ty) -> Ty {
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
    pub(super) fn part(&self, file: u32, of: ExprId, ty: u32, part: Part) -> Ty {
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

    pub(super) fn pattern_record(&self, file: u32, ty: u32) -> Option<Gid> {
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
