//! Types, bounds and paths.

use super::{Lower, UNKNOWN};
use crate::facts::{NONE, UseId, UseKind};
use crate::rust::code::{Base, Ns, Prim, TypeId, TypeRef};
use crate::rust::nodes::{F, K};
use crate::rust::syntax::Node;

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
        let child = |s: &mut Self, f: F| node.field(f).map_or(UNKNOWN, |ty| s.ty(ty));
        let ty = match node.kind() {
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
            K::PrimitiveType => TypeRef::Prim(Prim::named(node.text()).unwrap_or(Prim::Usize)),
            K::ReferenceType => {
                let mutable = node.children().any(|c| c.kind() == K::MutableSpecifier);
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
                match node.field(F::Length) {
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
                let bounds = node
                    .field(F::Trait)
                    .map(|bound| self.one_bound(bound))
                    .unwrap_or_default();
                TypeRef::Bounds(bounds.into())
            }
            K::BoundedType | K::RemovedBound | K::HigherRanked => TypeRef::Bounds(self.one_bound(node).into()),
            K::FunctionType => self.function_type(node),
            K::QualifiedType => {
                let ty = child(self, F::Type);
                let of = node.field(F::Alias).map_or(NONE, |of| self.ty(of));
                TypeRef::Qualified { ty, of }
            }
            K::BracketedType | K::ParenthesizedExpression => match node.first_child() {
                Some(inner) => return self.ty(inner),
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
                for child in node.children() {
                    self.ty(child);
                }
                TypeRef::Unknown
            }
        };
        self.push_type(ty)
    }

    fn types(&mut self, node: Node<'_>) -> Box<[TypeId]> {
        node.children().map(|child| self.ty(child)).collect()
    }

    fn function_type(&mut self, node: Node<'_>) -> TypeRef {
        let mut params = Vec::new();
        for parameter in node.children_in(F::Parameters) {
            let ty = if parameter.kind() == K::Parameter {
                parameter.field(F::Type)
            } else {
                Some(parameter)
            };
            let ty = ty.map_or(UNKNOWN, |ty| self.ty(ty));
            params.push(ty);
        }
        let ret = node.field(F::ReturnType).map_or(NONE, |ty| self.ty(ty));
        let params = params.into();
        match node.field(F::Trait) {
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
        for child in node.children() {
            all.extend(self.one_bound(child));
        }
        all.into()
    }

    /// Walks one bound, or a sum of bounds.
    fn one_bound(&mut self, node: Node<'_>) -> Vec<TypeId> {
        match node.kind() {
            K::Lifetime => Vec::new(),
            K::BoundedType => {
                let children = node.children();
                children.into_iter().flat_map(|child| self.one_bound(child)).collect()
            }
            K::RemovedBound => {
                self.types(node);
                Vec::new()
            }
            K::HigherRanked => node.field(F::Type).map(|ty| self.one_bound(ty)).unwrap_or_default(),
            K::TupleType => {
                // Bounds in parentheses.
                let children = node.children();
                children.into_iter().flat_map(|child| self.one_bound(child)).collect()
            }
            K::AbstractType | K::DynamicType => node.field(F::Trait).map(|b| self.one_bound(b)).unwrap_or_default(),
            _ => vec![self.ty(node)],
        }
    }

    /// Walks a path and returns its end. All its segments but the last are types or modules.
    pub fn path(&mut self, node: Node<'_>, ns: Ns, use_kind: UseKind) -> PathEnd {
        self.deeper(node, PathEnd::Base(Base::Root), |s| s.path_inner(node, ns, use_kind))
    }

    fn path_inner(&mut self, node: Node<'_>, ns: Ns, use_kind: UseKind) -> PathEnd {
        match node.kind() {
            K::Crate | K::Metavariable => PathEnd::Base(Base::Crate),
            K::SelfKeyword => PathEnd::Base(Base::Module(0)),
            K::Super => PathEnd::Base(Base::Module(1)),
            K::PrimitiveType => {
                let ty = self.ty(node);
                PathEnd::Base(Base::Type(ty))
            }
            K::Identifier | K::TypeIdentifier => {
                if node.text() == "Self" {
                    return PathEnd::Base(Base::SelfType);
                }
                PathEnd::Use(self.use_path(node, Base::Lexical, ns, use_kind))
            }
            K::ScopedIdentifier | K::ScopedTypeIdentifier => {
                let base = match node.field(F::Path) {
                    Some(path) => self.path_base(path),
                    None => Base::Root,
                };
                match node.field(F::Name) {
                    Some(name) if name.kind() == K::Super => PathEnd::Base(match base {
                        Base::Module(up) => Base::Module(up + 1),
                        _ => Base::Module(1),
                    }),
                    Some(name) => PathEnd::Use(self.use_path(name, base, ns, use_kind)),
                    None => PathEnd::Base(base),
                }
            }
            K::GenericType | K::GenericTypeTurbofish | K::GenericFunction | K::GenericPattern => {
                let inner = node
                    .field(F::Type)
                    .or_else(|| node.field(F::Function))
                    .or_else(|| node.first_child());
                let end = inner.map_or(PathEnd::Base(Base::Root), |inner| self.path(inner, ns, use_kind));
                if let Some(list) = node.field(F::TypeArguments) {
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
        for child in node.children() {
            match child.kind() {
                K::Lifetime => {}
                K::TypeBinding => {
                    let Some(name) = child.field(F::Name) else { continue };
                    if let Some(id) = of {
                        self.use_path(name, Base::Use(id), Ns::Type, UseKind::Type);
                    }
                    let text = name.text();
                    let ty = child.field(F::Type).map_or(UNKNOWN, |ty| self.ty(ty));
                    let name = self.facts.name(text);
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
                    if child.kind() == K::Block {
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
