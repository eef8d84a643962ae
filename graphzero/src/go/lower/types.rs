//! Types: what is declared, what is written, and the members of both.

use tree_sitter::Node;

use super::Lower;
use crate::declared::build::{UNKNOWN, children, fields};
use crate::declared::code::{Expr, ExprId, Want};
use crate::facts::{DefId, Kind, NONE, UseKind};

impl Lower<'_> {
    pub fn type_spec(&mut self, node: Node<'_>) {
        let (Some(name), Some(ty)) = (node.child_by_field_name("name"), node.child_by_field_name("type")) else {
            return;
        };
        let kind = match ty.kind() {
            "struct_type" => Kind::Struct,
            "interface_type" => Kind::Interface,
            _ => Kind::TypeAlias,
        };
        let def = self.define(name, node, kind, None);
        let owner = std::mem::replace(&mut self.b.owner, def);
        let scope = self.b.open_scope(NONE);
        self.type_parameters(node);
        match kind {
            Kind::Struct | Kind::Interface => self.members(ty, def),
            _ => {
                let value = self.ty(ty);
                self.b.item(def).value = value;
            }
        }
        self.b.scope = scope;
        self.b.owner = owner;
    }

    pub fn type_parameters(&mut self, node: Node<'_>) {
        let parameters = node.child_by_field_name("type_parameters").map(children);
        for parameter in parameters.unwrap_or_default() {
            let constraint = self.field(parameter, "type");
            for name in fields(parameter, "name") {
                self.b.type_parameter(name, constraint);
            }
        }
    }

    /// Walks the fields and methods of a struct or interface.
    fn members(&mut self, node: Node<'_>, def: DefId) {
        for child in children(node) {
            match child.kind() {
                "field_declaration_list" => self.members(child, def),
                "field_declaration" => {
                    let names = fields(child, "name");
                    let written = child.child_by_field_name("type");
                    if names.is_empty() {
                        let base = written.map_or(UNKNOWN, |ty| self.ty(ty));
                        self.b.item(def).bases.push(base);
                        continue;
                    }
                    let first = self.b.facts.def_count() as DefId;
                    for name in &names {
                        self.define(*name, child, Kind::Field, None);
                    }
                    let owner = std::mem::replace(&mut self.b.owner, first);
                    let ty = written.map_or(UNKNOWN, |ty| self.ty(ty));
                    self.b.owner = owner;
                    let value = self.b.instance(ty);
                    for at in 0..names.len() as DefId {
                        self.b.item(first + at).value = value;
                    }
                }
                "method_elem" => self.function(child, Kind::TraitMethod, def),
                "type_elem" => {
                    for part in children(child) {
                        let base = self.ty(part);
                        self.b.item(def).bases.push(base);
                    }
                }
                _ => {
                    self.node(child);
                }
            }
        }
    }

    pub fn ty(&mut self, node: Node<'_>) -> ExprId {
        if !self.b.enter(node) {
            return UNKNOWN;
        }
        let ty = self.ty_inner(node);
        self.b.leave();
        ty
    }

    fn ty_inner(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            "type_identifier" | "identifier" => self.b.name_use(node, UseKind::Type, Want::Type),
            "qualified_type" => {
                let Some((package, name)) = node
                    .child_by_field_name("package")
                    .zip(node.child_by_field_name("name"))
                else {
                    return UNKNOWN;
                };
                let of = self.b.name_use(package, UseKind::Value, Want::Value);
                self.b.member_use(of, name, UseKind::Type, Want::Type)
            }
            "pointer_type" | "parenthesized_type" | "type_elem" | "negated_type" => {
                let parts: Vec<ExprId> = children(node).into_iter().map(|part| self.ty(part)).collect();
                parts.first().copied().unwrap_or(UNKNOWN)
            }
            "slice_type" | "array_type" | "implicit_length_array_type" => {
                self.field(node, "length");
                let element = node.child_by_field_name("element").map_or(UNKNOWN, |e| self.ty(e));
                self.b.expr(Expr::List(element))
            }
            "channel_type" | "map_type" => {
                if let Some(key) = node.child_by_field_name("key") {
                    self.ty(key);
                }
                let value = node.child_by_field_name("value").map_or(UNKNOWN, |e| self.ty(e));
                self.b.expr(Expr::List(value))
            }
            "generic_type" => {
                let ty = node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty));
                let arguments = node.child_by_field_name("type_arguments").map(children);
                for argument in arguments.unwrap_or_default() {
                    self.ty(argument);
                }
                ty
            }
            "function_type" => {
                let scope = self.b.open_scope(NONE);
                self.parameters(node);
                if let Some(result) = node.child_by_field_name("result") {
                    self.results(result);
                }
                self.b.scope = scope;
                UNKNOWN
            }
            "struct_type" | "interface_type" => {
                // A type without a name: its members belong to whatever it is written in.
                self.nameless(node);
                UNKNOWN
            }
            _ => {
                self.all(node);
                UNKNOWN
            }
        }
    }

    fn nameless(&mut self, node: Node<'_>) {
        for child in children(node) {
            match child.kind() {
                "field_declaration_list" => self.nameless(child),
                "field_declaration" => {
                    for name in fields(child, "name") {
                        self.define(name, child, Kind::Field, None);
                    }
                    self.field(child, "type");
                }
                "method_elem" => self.function(child, Kind::TraitMethod, NONE),
                _ => {
                    self.node(child);
                }
            }
        }
    }
}
