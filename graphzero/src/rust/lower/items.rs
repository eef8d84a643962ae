//! Items: modules, types, traits, implementations, functions, imports.

mod imports;

use super::{Lower, UNKNOWN};
use crate::facts::{DefId, Kind, NONE, Span, UseKind};
use crate::rust::code::{
    Base, Expr, ExprId, GenericParam, Generics, Import, ItemKind, Link, Ns, Receiver, ScopeKind, TypeId, TypeRef,
};
use crate::rust::conditions::holds;
use crate::rust::nodes::{F, K};
use crate::rust::syntax::Node;

/// What stands before an item.
#[derive(Clone, Debug, Default)]
pub struct Before {
    doc: Option<Span>,
    test: bool,
    path: Option<String>,
    exported: bool,
    conditional: bool,
    inactive: bool,
}

impl Lower<'_, '_, '_> {
    /// Walks a list of items and statements. Returns the value of the last expression, if the list ends with one.
    pub fn list(&mut self, node: Node<'_>) -> Option<ExprId> {
        let mut before = Before::default();
        let mut tail = None;
        for child in node.named_children() {
            match child.kind() {
                K::LineComment | K::BlockComment => {
                    if child.field(F::Doc).is_some() {
                        let span = self.span(child);
                        let doc = before.doc.get_or_insert(span);
                        doc.end = span.end;
                    }
                    continue;
                }
                K::AttributeItem => {
                    self.attribute(child, &mut before);
                    continue;
                }
                K::InnerAttribute => continue,
                _ => {}
            }
            let given = std::mem::take(&mut before);
            let first = self.code.items.len() as DefId;
            tail = if self.item(child, &given) {
                None
            } else {
                self.statement(child)
            };
            if given.conditional {
                // Items inside a statement, or made by a macro, stand under its condition, too.
                for def in first..self.code.items.len() as DefId {
                    if let Some(entry) = self.facts.def_mut(def) {
                        entry.conditional = true;
                        entry.inactive |= given.inactive;
                    }
                }
            }
        }
        tail
    }

    fn attribute(&mut self, node: Node<'_>, before: &mut Before) {
        let text = node.text();
        let inner: String = text
            .trim_start_matches("#[")
            .trim_end_matches(']')
            .split_whitespace()
            .collect();
        let name = inner.split(['(', '=']).next().unwrap_or_default();
        let last = name.rsplit("::").next().unwrap_or_default();
        if matches!(
            last,
            "test" | "bench" | "rstest" | "test_case" | "quickcheck" | "wasm_bindgen_test"
        ) || inner.starts_with("cfg(test)")
            || inner.starts_with("cfg(all(test")
        {
            before.test = true;
        }
        if name == "path"
            && let Some((_, value)) = text.split_once('"')
        {
            before.path = value.split('"').next().map(str::to_owned);
        }
        before.exported |= name == "macro_export";
        if let Some(condition) = inner.strip_prefix("cfg(").and_then(|rest| rest.strip_suffix(')'))
            && condition != "test"
        {
            before.conditional = true;
            before.inactive |= holds(condition, None) == Some(false);
        }
    }

    /// Walks an item; returns false if the node is none.
    fn item(&mut self, node: Node<'_>, before: &Before) -> bool {
        match node.kind() {
            K::ModItem => self.module(node, before),
            K::StructItem => self.record(node, Kind::Struct, before),
            K::UnionItem => self.record(node, Kind::Union, before),
            K::EnumItem => self.enumeration(node, before),
            K::TraitItem => self.trait_item(node, before),
            K::ImplItem => self.implementation(node, before),
            K::FunctionItem | K::FunctionSignature => self.function(node, before),
            K::ConstItem | K::StaticItem => self.constant(node, before),
            K::TypeItem | K::AssociatedType => self.alias(node, before),
            K::MacroDefinition => self.macro_definition(node, before),
            K::UseDeclaration => self.use_declaration(node),
            K::ExternCrate => self.extern_crate(node),
            K::ForeignModItem => {
                if let Some(body) = node.field(F::Body) {
                    self.list(body);
                }
            }
            _ => return false,
        }
        true
    }

    /// Completes what all definitions have.
    fn complete(&mut self, def: DefId, node: Node<'_>, before: &Before, head: Option<u32>) {
        let public = node
            .first_child()
            .is_some_and(|child| child.kind() == K::VisibilityModifier);
        let start = self.span(node).start;
        if let Some(entry) = self.facts.def_mut(def) {
            entry.public = public || before.exported;
            entry.test |= before.test;
            entry.conditional |= before.conditional;
            entry.inactive |= before.inactive;
            entry.head = head.unwrap_or(entry.full.end);
            entry.doc = before.doc.unwrap_or(Span { start, end: start });
        }
    }

    fn module(&mut self, node: Node<'_>, before: &Before) {
        let Some(name) = node.field(F::Name) else { return };
        let def = self.define(name, node, Kind::Module, true);
        let body = node.field(F::Body);
        self.complete(def, node, before, body.map(|b| self.span(b).start));
        let path = before.path.as_ref().map_or(NONE, |path| self.facts.name(path));
        let inner = if body.is_some() {
            self.push_scope(ScopeKind::Module(def))
        } else {
            NONE
        };
        let item = self.item_mut(def);
        item.kind = ItemKind::Module {
            inline: body.is_some(),
            path,
        };
        item.inner = inner;
        if let Some(body) = body {
            self.inside(def, |s| s.within(inner, |s| s.list(body)));
        }
    }

    /// Opens the scope of an item's generics and reads them.
    fn generics(&mut self, def: DefId, node: Node<'_>) {
        let scope = self.push_scope(ScopeKind::Item(def));
        self.item_mut(def).inner = scope;
        let mut generics = Generics::default();
        self.within(scope, |s| {
            let mut nodes = Vec::new();
            if let Some(list) = node.field(F::TypeParameters) {
                for child in list.children() {
                    let constant = child.kind() == K::ConstParameter;
                    if constant || child.kind() == K::TypeParameter {
                        let Some(name) = child.field(F::Name) else { continue };
                        let text = name.text();
                        let name = s.facts.name(text);
                        generics.params.push(GenericParam {
                            name,
                            constant,
                            bounds: Box::default(),
                            default: NONE,
                        });
                        nodes.push(child);
                    } else {
                        s.stray_types(child);
                    }
                }
            }
            // Bounds may mention any parameter, so the names come first.
            s.item_mut(def).generics = Some(Box::new(generics.clone()));
            for (at, child) in nodes.into_iter().enumerate() {
                generics.params[at].bounds = child.field(F::Bounds).map(|b| s.bounds(b)).unwrap_or_default();
                if let Some(ty) = child.field(F::Type) {
                    s.ty(ty);
                }
                if let Some(default) = child.field(F::DefaultType) {
                    generics.params[at].default = s.ty(default);
                }
            }
            for child in node.children() {
                if child.kind() != K::WhereClause {
                    continue;
                }
                for predicate in child.children() {
                    let Some(left) = predicate.field(F::Left) else {
                        continue;
                    };
                    let subject = if left.kind() == K::Lifetime {
                        UNKNOWN
                    } else {
                        s.ty(left)
                    };
                    let bounds = predicate.field(F::Bounds).map(|b| s.bounds(b)).unwrap_or_default();
                    generics.wheres.push((subject, bounds));
                }
            }
        });
        let empty = generics.params.is_empty() && generics.wheres.is_empty();
        self.item_mut(def).generics = (!empty).then(|| Box::new(generics));
    }

    fn record(&mut self, node: Node<'_>, what: Kind, before: &Before) {
        let Some(name) = node.field(F::Name) else { return };
        let def = self.define(name, node, what, true);
        let body = node.field(F::Body);
        self.complete(def, node, before, body.map(|b| self.span(b).start));
        self.inside(def, |s| {
            s.generics(def, node);
            let inner = s.item_mut(def).inner;
            let tuple = s.within(inner, |s| s.record_body(body));
            s.item_mut(def).kind = ItemKind::Record { tuple };
        });
    }

    /// Walks the fields of a record or variant; returns the types of positional ones.
    fn record_body(&mut self, body: Option<Node<'_>>) -> Box<[TypeId]> {
        let Some(body) = body else { return Box::default() };
        let mut tuple = Vec::new();
        let mut doc = Before::default();
        for child in body.named_children() {
            match child.kind() {
                K::LineComment | K::BlockComment if child.field(F::Doc).is_some() => {
                    let span = self.span(child);
                    doc.doc.get_or_insert(span).end = span.end;
                }
                K::LineComment | K::BlockComment => {}
                K::AttributeItem | K::VisibilityModifier => {}
                K::FieldDeclaration => {
                    let given = std::mem::take(&mut doc);
                    let Some(name) = child.field(F::Name) else { continue };
                    let def = self.define(name, child, Kind::Field, false);
                    self.complete(def, child, &given, None);
                    let ty = self.inside(def, |s| child.field(F::Type).map_or(UNKNOWN, |ty| s.ty(ty)));
                    self.item_mut(def).kind = ItemKind::Typed { ty };
                }
                _ if body.kind() == K::OrderedFields => {
                    let ty = self.ty(child);
                    tuple.push(ty);
                }
                _ => {}
            }
        }
        tuple.into()
    }

    fn enumeration(&mut self, node: Node<'_>, before: &Before) {
        let Some(name) = node.field(F::Name) else { return };
        let def = self.define(name, node, Kind::Enum, true);
        let body = node.field(F::Body);
        self.complete(def, node, before, body.map(|b| self.span(b).start));
        self.inside(def, |s| {
            s.generics(def, node);
            let inner = s.item_mut(def).inner;
            s.within(inner, |s| {
                let mut doc = Before::default();
                let Some(body) = body else { return };
                for child in body.named_children() {
                    match child.kind() {
                        K::LineComment | K::BlockComment if child.field(F::Doc).is_some() => {
                            let span = s.span(child);
                            doc.doc.get_or_insert(span).end = span.end;
                        }
                        K::EnumVariant => {
                            let given = std::mem::take(&mut doc);
                            let Some(name) = child.field(F::Name) else { continue };
                            let variant = s.define(name, child, Kind::EnumMember, false);
                            s.complete(variant, child, &given, None);
                            let outer = s.facts.def_ref(def).is_some_and(|d| d.public);
                            if let Some(entry) = s.facts.def_mut(variant) {
                                entry.public = outer;
                            }
                            let tuple = s.inside(variant, |s| s.record_body(child.field(F::Body)));
                            s.item_mut(variant).kind = ItemKind::Record { tuple };
                            if let Some(value) = child.field(F::Value) {
                                s.inside(variant, |s| s.expr(value));
                            }
                        }
                        _ => {}
                    }
                }
            });
        });
    }

    fn trait_item(&mut self, node: Node<'_>, before: &Before) {
        let Some(name) = node.field(F::Name) else { return };
        let def = self.define(name, node, Kind::Trait, true);
        let body = node.field(F::Body);
        self.complete(def, node, before, body.map(|b| self.span(b).start));
        self.inside(def, |s| {
            s.generics(def, node);
            let inner = s.item_mut(def).inner;
            s.within(inner, |s| {
                let supers = node.field(F::Bounds).map(|b| s.bounds(b)).unwrap_or_default();
                s.item_mut(def).kind = ItemKind::Trait { supers };
                if let Some(body) = body {
                    s.list(body);
                }
            });
        });
    }

    fn implementation(&mut self, node: Node<'_>, before: &Before) {
        let Some(target) = node.field(F::Type) else { return };
        let name = last_name(target).unwrap_or(target);
        let def = self.define(name, node, Kind::Impl, false);
        let body = node.field(F::Body);
        self.complete(def, node, before, body.map(|b| self.span(b).start));
        self.code.scopes[self.scope as usize].items.push(def);
        self.inside(def, |s| {
            s.generics(def, node);
            let inner = s.item_mut(def).inner;
            s.within(inner, |s| {
                let of = node.field(F::Trait).map_or(NONE, |t| s.ty(t));
                let ty = s.ty(target);
                s.item_mut(def).kind = ItemKind::Impl { ty, of };
                if let Some(body) = body {
                    s.list(body);
                }
            });
        });
    }

    fn function(&mut self, node: Node<'_>, before: &Before) {
        let Some(name) = node.field(F::Name) else { return };
        let parameters = node.field(F::Parameters);
        let receiver = parameters.map_or(Receiver::None, |list| {
            let receivers = list.children().map(|p| self.receiver(p));
            receivers.max_by_key(|r| *r != Receiver::None).unwrap_or(Receiver::None)
        });
        let holder = if matches!(self.code.scopes[self.scope as usize].kind, ScopeKind::Item(_)) {
            self.facts.def_ref(self.owner).map(|def| def.kind)
        } else {
            None
        };
        let what = match holder {
            Some(Kind::Trait) => Kind::TraitMethod,
            Some(Kind::Impl) if receiver != Receiver::None => Kind::Method,
            Some(Kind::Impl) => Kind::StaticMethod,
            _ => Kind::Function,
        };
        let def = self.define(name, node, what, true);
        let body = node.field(F::Body);
        self.complete(def, node, before, body.map(|b| self.span(b).start));
        self.inside(def, |s| {
            s.generics(def, node);
            let inner = s.item_mut(def).inner;
            s.within(inner, |s| {
                let mut params = Vec::new();
                for parameter in parameters.into_iter().flat_map(Node::children) {
                    match parameter.kind() {
                        K::SelfParameter => {
                            let mut value = s.push_expr(Expr::SelfValue(inner));
                            if s.receiver(parameter) != Receiver::Value {
                                value = s.push_expr(Expr::Ref(value));
                            }
                            s.bind("self", value);
                        }
                        K::Parameter => {
                            let ty = parameter.field(F::Type).map_or(UNKNOWN, |ty| s.ty(ty));
                            let value = s.push_expr(Expr::Typed(ty));
                            let Some(pattern) = parameter.field(F::Pattern) else {
                                continue;
                            };
                            if pattern.kind() == K::SelfKeyword {
                                s.bind("self", value);
                            } else {
                                s.pattern(pattern, value);
                                params.push(ty);
                            }
                        }
                        K::AttributeItem => {}
                        _ => {
                            let ty = s.ty(parameter);
                            params.push(ty);
                        }
                    }
                }
                let ret = node.field(F::ReturnType).map_or(NONE, |ty| s.ty(ty));
                let params = params.into_boxed_slice();
                s.item_mut(def).kind = ItemKind::Fn {
                    params: params.clone(),
                    receiver,
                    ret,
                    body: NONE,
                };
                if let Some(block) = body {
                    let body = s.block(block);
                    s.item_mut(def).kind = ItemKind::Fn {
                        params,
                        receiver,
                        ret,
                        body,
                    };
                }
            });
        });
    }

    /// Tells how a parameter takes the receiver, if it is one.
    fn receiver(&self, parameter: Node<'_>) -> Receiver {
        let text = parameter.text();
        match parameter.kind() {
            K::SelfParameter if !text.starts_with('&') => Receiver::Value,
            K::SelfParameter if parameter.children().any(|c| c.kind() == K::MutableSpecifier) => Receiver::Mutable,
            K::SelfParameter => Receiver::Shared,
            K::Parameter if parameter.field(F::Pattern).is_some_and(|p| p.kind() == K::SelfKeyword) => Receiver::Value,
            _ => Receiver::None,
        }
    }

    fn constant(&mut self, node: Node<'_>, before: &Before) {
        let Some(name) = node.field(F::Name) else { return };
        let what = if node.kind() == K::StaticItem {
            Kind::StaticVariable
        } else {
            Kind::Constant
        };
        let value = node.field(F::Value);
        if name.text() == "_" {
            let ty = node.field(F::Type).map_or(UNKNOWN, |ty| self.ty(ty));
            let _ = ty;
            let owner = self.owner;
            self.inside(owner, |s| value.map(|value| s.expr(value)));
            return;
        }
        let def = self.define(name, node, what, true);
        self.complete(def, node, before, value.map(|v| self.span(v).start));
        self.inside(def, |s| {
            let ty = node.field(F::Type).map_or(UNKNOWN, |ty| s.ty(ty));
            s.item_mut(def).kind = ItemKind::Typed { ty };
            if let Some(value) = value {
                s.expr(value);
            }
        });
    }

    fn alias(&mut self, node: Node<'_>, before: &Before) {
        let Some(name) = node.field(F::Name) else { return };
        let in_item = matches!(self.code.scopes[self.scope as usize].kind, ScopeKind::Item(_));
        let what = if in_item { Kind::AssociatedType } else { Kind::TypeAlias };
        let def = self.define(name, node, what, true);
        self.complete(def, node, before, None);
        self.inside(def, |s| {
            s.generics(def, node);
            let inner = s.item_mut(def).inner;
            s.within(inner, |s| {
                let bounds = node.field(F::Bounds).map(|b| s.bounds(b)).unwrap_or_default();
                let ty = node.field(F::Type).map_or(NONE, |ty| s.ty(ty));
                s.item_mut(def).kind = ItemKind::Alias { ty, bounds };
            });
        });
    }

    fn macro_definition(&mut self, node: Node<'_>, before: &Before) {
        let Some(name) = node.field(F::Name) else { return };
        let def = self.define(name, node, Kind::Macro, true);
        self.complete(def, node, before, None);
        let body = self.shifted(name.end_byte(), node.end_byte());
        let text = node
            .whole_text()
            .get(name.end_byte()..node.end_byte())
            .unwrap_or_default();
        let rules = super::rules::rules(text);
        let name = name.text();
        self.macros.insert(name.to_owned(), rules);
        self.facts.opaque(body);
        self.inside(def, |s| s.dollar_paths(node));
    }

    /// Notes `$crate::a::b` inside a macro's body: what any expansion reaches.
    fn dollar_paths(&mut self, node: Node<'_>) {
        let text = node.text();
        let start = node.start_byte();
        for (found, _) in text.match_indices("$crate::") {
            let mut at = found + "$crate::".len();
            let mut base = Base::Crate;
            loop {
                let rest = &text[at..];
                let length = rest
                    .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                    .unwrap_or(rest.len());
                if length == 0 {
                    break;
                }
                let place = self.shifted(start + at, start + at + length).start;
                let next = rest[length..].starts_with("::");
                let ns = if next { Ns::Type } else { Ns::Any };
                let link = Link::Path {
                    base,
                    scope: self.scope,
                    ns,
                };
                let use_kind = if rest[length..].starts_with('(') {
                    UseKind::Call
                } else {
                    UseKind::Value
                };
                base = Base::Use(self.use_name(&rest[..length], place, use_kind, link));
                if !next {
                    break;
                }
                at += length + 2;
            }
        }
    }

    /// Walks the types inside a node that is no type itself.
    fn stray_types(&mut self, node: Node<'_>) {
        for child in node.children() {
            if matches!(
                child.kind(),
                K::TypeIdentifier | K::GenericType | K::ScopedTypeIdentifier
            ) {
                self.ty(child);
            }
        }
    }

    /// Makes the type that a record's own name denotes in its scope.
    pub fn self_type(&mut self) -> TypeId {
        self.push_type(TypeRef::SelfType(self.scope))
    }
}

/// Returns the node of the last name of a type: what an implementation is called by.
fn last_name(node: Node<'_>) -> Option<Node<'_>> {
    match node.kind() {
        K::TypeIdentifier | K::Identifier | K::PrimitiveType => Some(node),
        K::GenericType | K::ReferenceType | K::PointerType => node.field(F::Type).and_then(last_name),
        K::ScopedTypeIdentifier => node.field(F::Name),
        K::ArrayType => node.field(F::Element).and_then(last_name),
        K::DynamicType => node.field(F::Trait).and_then(last_name),
        _ => None,
    }
}
