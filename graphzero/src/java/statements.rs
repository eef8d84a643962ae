//! From a syntax tree to the facts of one Java file: statements and expressions.

use tree_sitter::Node;

use super::lower::Lower;
use crate::declared::build::{UNKNOWN, children, count, fields};
use crate::declared::code::{Expr, ExprId, Want};
use crate::facts::{NONE, UseKind};

impl Lower<'_> {
    /// Walks what is no declaration; returns what it is as a value.
    pub(super) fn statement(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            "block"
            | "for_statement"
            | "try_with_resources_statement"
            | "switch_block_statement_group"
            | "switch_rule" => {
                let scope = self.b.open_scope(NONE);
                self.all(node);
                self.b.scope = scope;
                UNKNOWN
            }
            "catch_clause" => {
                let scope = self.b.open_scope(NONE);
                for child in children(node) {
                    if child.kind() == "catch_formal_parameter" {
                        let ty = children(child).into_iter().find(|c| c.kind() == "catch_type");
                        let ty = ty.map_or(UNKNOWN, |ty| self.ty(ty));
                        self.declare(child.child_by_field_name("name"), ty);
                    } else {
                        self.node(child);
                    }
                }
                self.b.scope = scope;
                UNKNOWN
            }
            "local_variable_declaration" => {
                self.local(node);
                UNKNOWN
            }
            "enhanced_for_statement" => {
                self.loop_over(node);
                UNKNOWN
            }
            "resource" => {
                let ty = node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty));
                let value = self.field(node, "value");
                match node.child_by_field_name("name") {
                    Some(name) => self.declare_as(Some(name), if ty == UNKNOWN { value } else { ty }, ty != UNKNOWN),
                    None => self.all(node),
                }
                UNKNOWN
            }
            "labeled_statement" => {
                for child in children(node).into_iter().skip(1) {
                    self.node(child);
                }
                UNKNOWN
            }
            "break_statement" | "continue_statement" => UNKNOWN,
            "marker_annotation" | "annotation" => {
                self.annotation(node);
                UNKNOWN
            }
            "lambda_expression" => {
                let scope = self.b.open_scope(NONE);
                match node.child_by_field_name("parameters") {
                    Some(one) if one.kind() == "identifier" => {
                        self.parameter(one);
                    }
                    Some(many) => {
                        for parameter in children(many) {
                            self.parameter(parameter);
                        }
                    }
                    None => {}
                }
                self.field(node, "body");
                self.b.scope = scope;
                UNKNOWN
            }
            _ => self.expression(node),
        }
    }

    fn declare(&mut self, name: Option<Node<'_>>, ty: ExprId) {
        self.declare_as(name, ty, true);
    }

    fn declare_as(&mut self, name: Option<Node<'_>>, of: ExprId, written: bool) {
        let Some(name) = name else { return };
        let value = if written { self.b.instance(of) } else { of };
        let (text, from) = (self.b.text(name), name.start_byte());
        self.b.local(text, from, value);
    }

    fn local(&mut self, node: Node<'_>) {
        for child in children(node).into_iter().filter(|c| c.kind() == "modifiers") {
            self.all(child);
        }
        let ty = node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty));
        for declarator in fields(node, "declarator") {
            let value = self.field(declarator, "value");
            let value = if ty == UNKNOWN {
                value
            } else {
                self.declared(declarator, ty)
            };
            if let Some(name) = declarator.child_by_field_name("name") {
                let (text, from) = (self.b.text(name), declarator.end_byte());
                self.b.local(text, from, value);
            }
        }
    }

    fn loop_over(&mut self, node: Node<'_>) {
        let scope = self.b.open_scope(NONE);
        let ty = node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty));
        let over = self.field(node, "value");
        let value = if ty == UNKNOWN {
            self.b.expr(Expr::Element(over))
        } else {
            self.b.instance(ty)
        };
        if let Some(name) = node.child_by_field_name("name") {
            let (text, from) = (self.b.text(name), name.start_byte());
            self.b.local(text, from, value);
        }
        self.field(node, "body");
        self.b.scope = scope;
    }

    fn annotation(&mut self, node: Node<'_>) {
        let ty = node.child_by_field_name("name").map_or(UNKNOWN, |name| self.ty(name));
        for argument in node.child_by_field_name("arguments").map(children).unwrap_or_default() {
            if argument.kind() != "element_value_pair" {
                self.node(argument);
                continue;
            }
            if let Some(key) = argument.child_by_field_name("key") {
                self.b.member_use(ty, key, UseKind::Value, Want::Call(0));
            }
            self.field(argument, "value");
        }
    }

    fn expression(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            "identifier" => self.b.name_use(node, UseKind::Value, Want::Value),
            "type_identifier"
            | "scoped_type_identifier"
            | "generic_type"
            | "array_type"
            | "integral_type"
            | "floating_point_type"
            | "boolean_type"
            | "void_type"
            | "annotated_type" => self.ty(node),
            "this" => self.b.class.map_or(UNKNOWN, |class| self.b.expr(Expr::This(class))),
            "super" => self.b.class.map_or(UNKNOWN, |class| self.b.expr(Expr::Super(class))),
            "string_literal" | "decimal_integer_literal" | "character_literal" => self.b.expr(Expr::External),
            "parenthesized_expression" => children(node).first().map_or(UNKNOWN, |&inner| self.node(inner)),
            "scoped_identifier" => {
                let of = self.field(node, "scope");
                match node.child_by_field_name("name") {
                    Some(name) => self.b.member_use(of, name, UseKind::Value, Want::Value),
                    None => UNKNOWN,
                }
            }
            "field_access" => {
                let of = self.field(node, "object");
                match node.child_by_field_name("field") {
                    // `Outer.this` is an object of the outer class.
                    Some(field) if field.kind() == "this" => self.b.instance(of),
                    Some(field) if field.kind() == "super" => of,
                    Some(field) => self.b.member_use(of, field, UseKind::Value, Want::Value),
                    None => UNKNOWN,
                }
            }
            "array_access" => {
                let of = self.field(node, "array");
                self.field(node, "index");
                self.b.expr(Expr::Element(of))
            }
            "cast_expression" => {
                let ty = node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty));
                self.field(node, "value");
                self.b.instance(ty)
            }
            "instanceof_expression" => {
                self.field(node, "left");
                let ty = node.child_by_field_name("right").map_or(UNKNOWN, |ty| self.ty(ty));
                self.declare(node.child_by_field_name("name"), ty);
                self.field(node, "pattern");
                UNKNOWN
            }
            "type_pattern" | "record_pattern_component" => {
                let parts = children(node);
                if let [ty, name] = parts[..] {
                    let ty = self.ty(ty);
                    self.declare(Some(name), ty);
                } else {
                    self.all(node);
                }
                UNKNOWN
            }
            "assignment_expression" => {
                let left = self.field(node, "left");
                self.field(node, "right");
                left
            }
            "ternary_expression" => {
                self.field(node, "condition");
                let value = self.field(node, "consequence");
                let other = self.field(node, "alternative");
                if value == UNKNOWN { other } else { value }
            }
            "method_invocation" => self.call(node),
            "object_creation_expression" => self.creation(node),
            "explicit_constructor_invocation" => {
                self.all(node);
                UNKNOWN
            }
            "method_reference" => self.reference(node),
            "array_creation_expression" => {
                let ty = node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty));
                for child in children(node).into_iter().skip(1) {
                    self.node(child);
                }
                self.b.expr(Expr::List(ty))
            }
            _ => {
                self.all(node);
                UNKNOWN
            }
        }
    }

    fn call(&mut self, node: Node<'_>) -> ExprId {
        let of = node.child_by_field_name("object").map(|object| self.node(object));
        if let Some(arguments) = node.child_by_field_name("type_arguments") {
            for ty in children(arguments) {
                self.ty(ty);
            }
        }
        let arguments = node.child_by_field_name("arguments").map(children).unwrap_or_default();
        let number = count(arguments.len());
        let Some(name) = node.child_by_field_name("name") else {
            return UNKNOWN;
        };
        let callee = match of {
            Some(of) => self.b.member_use(of, name, UseKind::Call, Want::Call(number)),
            None => self.b.name_use(name, UseKind::Call, Want::Call(number)),
        };
        for argument in arguments {
            self.node(argument);
        }
        self.b.expr(Expr::Call(callee, number))
    }

    fn creation(&mut self, node: Node<'_>) -> ExprId {
        let arguments = node.child_by_field_name("arguments").map(children).unwrap_or_default();
        let number = count(arguments.len());
        let outer = children(node)
            .into_iter()
            .next()
            .filter(|first| Some(*first) != node.child_by_field_name("type"));
        if let Some(outer) = outer.filter(|outer| outer.kind() != "type_arguments") {
            self.node(outer);
        }
        let ty = node
            .child_by_field_name("type")
            .map_or(UNKNOWN, |ty| self.created(ty, number));
        for argument in arguments {
            self.node(argument);
        }
        let body = children(node).into_iter().find(|child| child.kind() == "class_body");
        if let Some(body) = body {
            // A class without a name: inside, the members of its base are seen, and `this` is an object of it.
            let scope = self.b.open_scope(NONE);
            self.b.code.scopes[self.b.scope as usize].opened.push(ty);
            self.all(body);
            self.b.scope = scope;
        }
        self.b.instance(ty)
    }

    /// Walks the type after `new`: a call of its constructor.
    fn created(&mut self, node: Node<'_>, number: u8) -> ExprId {
        let want = Want::Call(number);
        match node.kind() {
            "type_identifier" => self.b.name_use(node, UseKind::Call, want),
            "scoped_type_identifier" => {
                let parts = children(node);
                match (parts.first(), parts.last()) {
                    (Some(of), Some(name)) if parts.len() > 1 => {
                        let of = self.ty(*of);
                        self.b.member_use(of, *name, UseKind::Call, want)
                    }
                    _ => UNKNOWN,
                }
            }
            "generic_type" => {
                let (mut of, mut arguments) = (UNKNOWN, Vec::new());
                for part in children(node) {
                    if part.kind() == "type_arguments" {
                        arguments.extend(children(part).into_iter().map(|ty| self.ty(ty)));
                    } else {
                        of = self.created(part, number);
                    }
                }
                self.b.expr(Expr::Generic(of, arguments.into()))
            }
            _ => self.ty(node),
        }
    }

    fn reference(&mut self, node: Node<'_>) -> ExprId {
        let parts = children(node);
        let Some(&first) = parts.first() else { return UNKNOWN };
        if parts.len() == 1 {
            // `Item::new`.
            if first.kind() == "identifier" {
                return self.b.name_use(first, UseKind::Value, Want::Type);
            }
            return self.node(first);
        }
        let of = self.node(first);
        match parts.last() {
            Some(name) if name.kind() == "identifier" => self.b.member_use(of, *name, UseKind::Value, Want::Value),
            _ => UNKNOWN,
        }
    }
}
