//! Types: annotations, interfaces and type literals.

use tree_sitter::Node;

use super::lower::Lower;
use crate::facts::{Kind, UseKind};
use crate::objects::build::{UNKNOWN, children};
use crate::objects::code::{Binding, Expr, ExprId};

impl Lower<'_> {
    /// Walks a type and returns what something of that type is.
    pub fn ty(&mut self, node: Node<'_>) -> ExprId {
        if !self.b.enter(node) {
            return UNKNOWN;
        }
        let value = self.ty_inner(node);
        self.b.leave();
        value
    }

    fn ty_inner(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            "type_annotation"
            | "parenthesized_type"
            | "readonly_type"
            | "opting_type_annotation"
            | "omitting_type_annotation"
            | "constraint"
            | "default_type"
            | "asserts_annotation"
            | "type_predicate_annotation" => {
                let mut value = UNKNOWN;
                for child in children(node) {
                    value = self.ty(child);
                }
                value
            }
            "type_identifier" | "identifier" => {
                let class = self.b.name_use(node, UseKind::Type, true);
                self.b.expr(Expr::Instance(class))
            }
            "nested_type_identifier" | "nested_identifier" => {
                let class = self.nested(node);
                self.b.expr(Expr::Instance(class))
            }
            "generic_type" => self.generic(node),
            "array_type" => {
                let inner = children(node).first().map_or(UNKNOWN, |inner| self.ty(*inner));
                self.b.expr(Expr::List(inner))
            }
            "tuple_type" => {
                let all = children(node).into_iter().map(|part| self.ty(part)).collect();
                let element = self.b.choice(all);
                self.b.expr(Expr::List(element))
            }
            "union_type" | "intersection_type" => {
                let all = children(node).into_iter().map(|part| self.ty(part)).collect();
                self.b.choice(all)
            }
            "type_query" => children(node).first().map_or(UNKNOWN, |inner| self.expr(*inner)),
            "object_type" | "interface_body" => {
                self.type_body(node);
                UNKNOWN
            }
            "function_type" | "constructor_type" | "call_signature" | "construct_signature" => {
                self.signature(node);
                UNKNOWN
            }
            "conditional_type" => {
                let scope = self.open_scope();
                let mut all = Vec::new();
                for name in ["left", "right", "consequence", "alternative"] {
                    let value = node.child_by_field_name(name).map_or(UNKNOWN, |part| self.ty(part));
                    if matches!(name, "consequence" | "alternative") {
                        all.push(value);
                    }
                }
                self.b.scope = scope;
                self.b.choice(all)
            }
            "infer_type" => {
                for child in children(node) {
                    if child.kind() == "type_identifier" {
                        let text = self.b.text(child);
                        self.b.bind(text, Binding::Value(UNKNOWN));
                    } else {
                        self.ty(child);
                    }
                }
                UNKNOWN
            }
            "mapped_type_clause" | "type_parameter" => {
                self.type_parameter(node);
                UNKNOWN
            }
            "type_predicate" => {
                if let Some(ty) = node.child_by_field_name("type") {
                    self.ty(ty);
                }
                UNKNOWN
            }
            "predefined_type" | "literal_type" | "existential_type" | "this_type" | "string" | "number" => UNKNOWN,
            "template_literal_type" | "template_type" => {
                for child in children(node) {
                    self.ty(child);
                }
                UNKNOWN
            }
            _ => {
                for child in children(node) {
                    self.ty(child);
                }
                UNKNOWN
            }
        }
    }

    fn nested(&mut self, node: Node<'_>) -> ExprId {
        let module = node
            .child_by_field_name("module")
            .or_else(|| node.child_by_field_name("object"));
        let of = match module {
            Some(module) if module.kind() == "nested_identifier" => self.nested(module),
            Some(module) => self.b.name_use(module, UseKind::Value, false),
            None => UNKNOWN,
        };
        let name = node
            .child_by_field_name("name")
            .or_else(|| node.child_by_field_name("property"));
        name.map_or(of, |name| self.b.member_use(of, name, UseKind::Type))
    }

    fn generic(&mut self, node: Node<'_>) -> ExprId {
        let Some(name) = node.child_by_field_name("name") else {
            return UNKNOWN;
        };
        let value = self.ty(name);
        let mut args = Vec::new();
        for arg in node
            .child_by_field_name("type_arguments")
            .map(children)
            .unwrap_or_default()
        {
            args.push(self.ty(arg));
        }
        let first = args.first().copied().unwrap_or(UNKNOWN);
        match self.b.text(name) {
            "Array" | "ReadonlyArray" | "Set" | "Iterable" | "Iterator" | "Generator" | "ReadonlySet" => {
                self.b.expr(Expr::List(first))
            }
            "Map" | "Record" | "ReadonlyMap" => {
                let inner = args.get(1).copied().unwrap_or(UNKNOWN);
                self.b.expr(Expr::List(inner))
            }
            "Promise" | "Partial" | "Readonly" | "Required" | "NonNullable" | "PromiseLike" | "Pick" | "Omit"
            | "Awaited" => first,
            _ => value,
        }
    }

    /// Walks type parameters, mapped types and other places that bind a type's name.
    pub fn type_parameter(&mut self, node: Node<'_>) {
        if let Some(name) = node.child_by_field_name("name") {
            let text = self.b.text(name);
            self.b.bind(text, Binding::Value(UNKNOWN));
            for child in children(node) {
                if child.id() != name.id() {
                    self.ty(child);
                }
            }
        } else {
            for child in children(node) {
                self.ty(child);
            }
        }
    }

    /// Walks the type parameters of a declaration, in the current scope.
    pub fn type_parameters(&mut self, node: Node<'_>) {
        for parameter in node
            .child_by_field_name("type_parameters")
            .map(children)
            .unwrap_or_default()
        {
            self.type_parameter(parameter);
        }
    }

    /// Walks a signature without a name, in a scope of its own; returns what it gives.
    pub fn signature(&mut self, node: Node<'_>) -> ExprId {
        let scope = self.open_scope();
        self.type_parameters(node);
        self.parameters(node, None);
        let ret = node
            .child_by_field_name("return_type")
            .or_else(|| node.child_by_field_name("type"));
        let value = ret.map_or(UNKNOWN, |ret| self.ty(ret));
        self.b.scope = scope;
        value
    }

    /// Walks the members of an interface or type literal.
    pub fn type_body(&mut self, node: Node<'_>) {
        for member in children(node) {
            match member.kind() {
                "property_signature" => {
                    let ty = |s: &mut Self| member.child_by_field_name("type").map_or(UNKNOWN, |ty| s.ty(ty));
                    let Some(name) = member
                        .child_by_field_name("name")
                        .filter(|n| n.kind() == "property_identifier")
                    else {
                        ty(self);
                        continue;
                    };
                    let def = self.b.define(name, member, Kind::Field, None);
                    let owner = std::mem::replace(&mut self.b.owner, def);
                    let value = ty(self);
                    self.b.owner = owner;
                    self.b.item(def).values.push(value);
                }
                "method_signature" => {
                    let Some(name) = member
                        .child_by_field_name("name")
                        .filter(|n| n.kind() == "property_identifier")
                    else {
                        self.signature(member);
                        continue;
                    };
                    let def = self.b.define(name, member, Kind::TraitMethod, None);
                    let owner = std::mem::replace(&mut self.b.owner, def);
                    let value = self.signature(member);
                    self.b.owner = owner;
                    self.b.item(def).values.push(value);
                }
                "call_signature" | "construct_signature" => {
                    self.signature(member);
                }
                "index_signature" => {
                    let scope = self.open_scope();
                    self.type_parameter(member);
                    self.b.scope = scope;
                }
                _ => {
                    self.ty(member);
                }
            }
        }
    }
}
