//! Types, bounds and paths.

use tree_sitter::Node;

use super::{Lower, UNKNOWN};
use crate::facts::{NONE, UseId, UseKind};
use crate::rust::code::{Base, Ns, Prim, TypeId, TypeRef};
use crate::rust::nodes::{F, K, field, kind};

/// What a path came to: its last use, or a keyword that stands for a type or module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEnd {
    /// A keyword, or a type in brackets.
    Base(Base),
    /// A name.
    Use(u32),
}

impl Lower<'_, '_, '_> {
    /// Walks a type.
    pub fn ty(&mut self, node: Node<'_>) -> TypeId {
        self.deeper(node, UNKNOWN, |s| s.ty_inner(node))
    }

    fn ty_inner(&mut self, node: Node<'_>) -> TypeId {
        let child = |s: &mut Self, f: F| field(node, f).map_or(UNKNOWN, |ty| s.ty(ty));
        let ty = match kind(node) {
            K::TypeIdentifier
            | K::Identifier
            | K::ScopedTypeIdentifier
            | K::ScopedIdentifier
            | K::GenericType
            | K::GenericTypeTurbofish => match self.path(node, Ns::Type, UseKind::Type) {
                PathEnd::Use(id) => TypeRef::Path(id),
                PathEnd::Base(Base::SelfType) => TypeRef::SelfType(self.scope),
                PathEnd::Base(Base::Type(ty)) => return ty,
                PathEnd::Base(_) => TypeRef::Unknown,
            },
            K::PrimitiveType => TypeRef::Prim(Prim::named(&self.text(node)).unwrap_or(Prim::Usize)),
            K::ReferenceType => {
                let mutable = self.children(node).iter().any(|c| kind(*c) == K::MutableSpecifier);
                let inner = child(self, F::Type);
                if mutable {
                    TypeRef::RefMut(inner)
                } else {
                    TypeRef::Ref(inner)
                }
            }
            K::PointerType => TypeRef::Ptr(child(self, F::Type)),
            K::ArrayType => {
                let element = child(self, F::Element);
                match field(node, F::Length) {
                    Some(length) => {
                        self.expr(length);
                        TypeRef::Array(element)
                    }
                    None => TypeRef::Slice(element),
                }
            }
            K::TupleType => TypeRef::Tuple(self.types(node)),
            K::UnitType => TypeRef::Tuple(Box::default()),
            K::NeverType => TypeRef::Never,
            K::AbstractType | K::DynamicType => {
                let bounds = field(node, F::Trait)
                    .map(|bound| self.one_bound(bound))
                    .unwrap_or_default();
                TypeRef::Bounds(bounds.into())
            }
            K::BoundedType | K::RemovedBound | K::HigherRanked => TypeRef::Bounds(self.one_bound(node).into()),
            K::FunctionType => self.function_type(node),
            K::QualifiedType => {
                let ty = child(self, F::Type);
                let of = field(node, F::Alias).map_or(NONE, |of| self.ty(of));
                TypeRef::Qualified { ty, of }
            }
            K::BracketedType | K::ParenthesizedExpression => match self.children(node).first() {
                Some(inner) => return self.ty(*inner),
                None => TypeRef::Unknown,
            },
            K::MacroInvocation => {
                self.macro_call(node, false);
                TypeRef::Unknown
            }
            K::Block => {
                self.expr(node);
                TypeRef::Unknown
            }
            _ => {
                for child in self.children(node) {
                    self.ty(child);
                }
                TypeRef::Unknown
            }
        };
        self.push_type(ty)
    }

    fn types(&mut self, node: Node<'_>) -> Box<[TypeId]> {
        self.children(node).into_iter().map(|child| self.ty(child)).collect()
    }

    fn function_type(&mut self, node: Node<'_>) -> TypeRef {
        let mut params = Vec::new();
        for parameter in field(node, F::Parameters)
            .map(|list| self.children(list))
            .unwrap_or_default()
        {
            let ty = if kind(parameter) == K::Parameter {
                field(parameter, F::Type)
            } else {
                Some(parameter)
            };
            let ty = ty.map_or(UNKNOWN, |ty| self.ty(ty));
            params.push(ty);
        }
        let ret = field(node, F::ReturnType).map_or(NONE, |ty| self.ty(ty));
        let params = params.into();
        match field(node, F::Trait) {
            Some(name) => {
                self.path(name, Ns::Type, UseKind::Type);
                TypeRef::FnTrait { params, ret }
            }
            None => TypeRef::Fn { params, ret },
        }
    }

    /// Walks a list of bounds; lifetimes are left out.
    pub fn bounds(&mut self, node: Node<'_>) -> Box<[TypeId]> {
        let mut all = Vec::new();
        for child in self.children(node) {
            all.extend(self.one_bound(child));
        }
        all.into()
    }

    /// Walks one bound, or a sum of bounds.
    fn one_bound(&mut self, node: Node<'_>) -> Vec<TypeId> {
        match kind(node) {
            K::Lifetime => Vec::new(),
            K::BoundedType => {
                let children = self.children(node);
                children.into_iter().flat_map(|child| self.one_bound(child)).collect()
            }
            K::RemovedBound => {
                self.types(node);
                Vec::new()
            }
            K::HigherRanked => field(node, F::Type).map(|ty| self.one_bound(ty)).unwrap_or_default(),
            K::TupleType => {
                // Bounds in parentheses.
                let children = self.children(node);
                children.into_iter().flat_map(|child| self.one_bound(child)).collect()
            }
            K::AbstractType | K::DynamicType => field(node, F::Trait).map(|b| self.one_bound(b)).unwrap_or_default(),
            _ => vec![self.ty(node)],
        }
    }

    /// Walks a path and returns its end. All its segments but the last are types or modules.
    pub fn path(&mut self, node: Node<'_>, ns: Ns, use_kind: UseKind) -> PathEnd {
        self.deeper(node, PathEnd::Base(Base::Root), |s| s.path_inner(node, ns, use_kind))
    }

    fn path_inner(&mut self, node: Node<'_>, ns: Ns, use_kind: UseKind) -> PathEnd {
        match kind(node) {
            K::Crate | K::Metavariable => PathEnd::Base(Base::Crate),
            K::SelfKeyword => PathEnd::Base(Base::Module(0)),
            K::Super => PathEnd::Base(Base::Module(1)),
            K::PrimitiveType => {
                let ty = self.ty(node);
                PathEnd::Base(Base::Type(ty))
            }
            K::Identifier | K::TypeIdentifier => {
                if self.text(node) == "Self" {
                    return PathEnd::Base(Base::SelfType);
                }
                PathEnd::Use(self.use_path(node, Base::Lexical, ns, use_kind))
            }
            K::ScopedIdentifier | K::ScopedTypeIdentifier => {
                let base = match field(node, F::Path) {
                    Some(path) => self.path_base(path),
                    None => Base::Root,
                };
                match field(node, F::Name) {
                    Some(name) if kind(name) == K::Super => PathEnd::Base(match base {
                        Base::Module(up) => Base::Module(up + 1),
                        _ => Base::Module(1),
                    }),
                    Some(name) => PathEnd::Use(self.use_path(name, base, ns, use_kind)),
                    None => PathEnd::Base(base),
                }
            }
            K::GenericType | K::GenericTypeTurbofish | K::GenericFunction | K::GenericPattern => {
                let inner = field(node, F::Type)
                    .or_else(|| field(node, F::Function))
                    .or_else(|| self.children(node).first().copied());
                let end = inner.map_or(PathEnd::Base(Base::Root), |inner| self.path(inner, ns, use_kind));
                if let Some(list) = field(node, F::TypeArguments) {
                    let of = if let PathEnd::Use(id) = end { Some(id) } else { None };
                    let args = self.type_arguments(list, of);
                    if let PathEnd::Use(id) = end {
                        self.code.args.push((id, args));
                    }
                }
                end
            }
            K::BracketedType => {
                let ty = self.ty(node);
                PathEnd::Base(Base::Type(ty))
            }
            _ => {
                let ty = self.ty(node);
                PathEnd::Base(Base::Type(ty))
            }
        }
    }

    /// Walks a path whose end is a type or module that something is looked up in.
    pub fn path_base(&mut self, node: Node<'_>) -> Base {
        match self.path(node, Ns::Type, UseKind::Type) {
            PathEnd::Base(base) => base,
            PathEnd::Use(id) => Base::Use(id),
        }
    }

    /// Walks generic arguments of what `of` names; lifetimes are left out.
    pub fn type_arguments(&mut self, node: Node<'_>, of: Option<UseId>) -> Box<[TypeId]> {
        let mut args = Vec::new();
        for child in self.children(node) {
            match kind(child) {
                K::Lifetime => {}
                K::TypeBinding => {
                    let Some(name) = field(child, F::Name) else { continue };
                    if let Some(id) = of {
                        self.use_path(name, Base::Use(id), Ns::Type, UseKind::Type);
                    }
                    let text = self.text(name);
                    let ty = field(child, F::Type).map_or(UNKNOWN, |ty| self.ty(ty));
                    let name = self.facts.name(&text);
                    args.push(self.push_type(TypeRef::Binding { name, ty }));
                }
                K::TraitBounds => {
                    self.bounds(child);
                }
                K::Block
                | K::IntegerLiteral
                | K::BooleanLiteral
                | K::StringLiteral
                | K::CharLiteral
                | K::NegativeLiteral => {
                    if kind(child) == K::Block {
                        self.expr(child);
                    }
                    args.push(UNKNOWN);
                }
                _ => {
                    let ty = self.ty(child);
                    args.push(ty);
                }
            }
        }
        args.into()
    }
}
