//! Members: of classes and interfaces with their bases, of written types, of objects, of modules.

use super::*;

impl<M: Modules> ObjectResolver<M> {
    /// Returns what a member of something is.
    pub(super) fn member_types(&self, holder: &Ty, name: &str, space: Space, depth: usize) -> Vec<Ty> {
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

    pub(super) fn both(&self, file: FileId, all: &[ExprId], env: &Env, depth: usize) -> Vec<Ty> {
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

    pub(super) fn elements(&self, ty: &Ty, depth: usize, found: &mut Vec<Ty>) {
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

    /// Returns the bases of a class or interface.
    pub(super) fn bases(&self, gid: Gid, env: &Env, depth: usize) -> Vec<Ty> {
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

    pub(super) fn class_members(&self, gid: Gid, env: &Env, name: &str, depth: usize) -> Vec<(Gid, Env)> {
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
}
