//! Statements and expressions of C and C++.

use tree_sitter::Node;

use super::declarator::Declarator;
use super::lower::Lower;
use crate::declared::build::{UNKNOWN, children, count};
use crate::declared::code::{Expr, ExprId, Want};
use crate::facts::{NONE, UseKind};

impl Lower<'_> {
    /// Walks what is no declaration; returns what it is as a value.
    pub(super) fn expression(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            "compound_statement" | "for_statement" | "if_statement" | "while_statement" | "switch_statement"
            | "catch_clause" | "case_statement" => {
                let scope = self.b.open_scope(NONE);
                self.all(node);
                self.b.scope = scope;
                UNKNOWN
            }
            "for_range_loop" => {
                self.range_loop(node);
                UNKNOWN
            }
            "goto_statement" | "statement_identifier" => UNKNOWN,
            "labeled_statement" => {
                for child in children(node).into_iter().skip(1) {
                    self.node(child);
                }
                UNKNOWN
            }
            "identifier" => self.b.name_use(node, UseKind::Value, Want::Value),
            "type_identifier"
            | "template_type"
            | "struct_specifier"
            | "class_specifier"
            | "union_specifier"
            | "enum_specifier"
            | "type_descriptor"
            | "primitive_type"
            | "sized_type_specifier"
            | "decltype"
            | "placeholder_type_specifier"
            | "dependent_type" => self.ty(node),
            "qualified_identifier" => self.qualified(node, None, UseKind::Value, Want::Value),
            "template_function" => self.template_function(node, UseKind::Value, Want::Value),
            "this" => self.b.class.map_or(UNKNOWN, |class| self.b.expr(Expr::This(class))),
            "number_literal" | "string_literal" | "char_literal" | "true" | "false" | "null" => {
                self.b.expr(Expr::External)
            }
            "parenthesized_expression" => children(node).first().map_or(UNKNOWN, |&inner| self.node(inner)),
            "field_expression" => self.member(node, UseKind::Value, Want::Value),
            "call_expression" => self.call(node),
            "new_expression" => self.creation(node),
            "pointer_expression" => {
                let of = self.field(node, "argument");
                if self.b.text(node).starts_with('*') {
                    self.b.expr(Expr::Element(of))
                } else {
                    of
                }
            }
            "subscript_expression" => {
                let of = self.field(node, "argument");
                for part in ["index", "indices"] {
                    self.field(node, part);
                }
                self.b.expr(Expr::Element(of))
            }
            "cast_expression" => {
                let ty = node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty));
                self.field(node, "value");
                self.b.instance(ty)
            }
            "compound_literal_expression" => {
                let ty = node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty));
                let value = self.b.instance(ty);
                if let Some(braces) = node.child_by_field_name("value") {
                    self.braces(braces, value);
                }
                value
            }
            "assignment_expression" => {
                let left = self.field(node, "left");
                self.field(node, "right");
                left
            }
            "conditional_expression" => {
                self.field(node, "condition");
                let value = self.field(node, "consequence");
                let other = self.field(node, "alternative");
                if value == UNKNOWN { other } else { value }
            }
            "lambda_expression" => {
                let scope = self.b.open_scope(NONE);
                self.field(node, "captures");
                if let Some(declarator) = node.child_by_field_name("declarator") {
                    let read = Declarator::read(declarator);
                    if let Some(parameters) = read.parameters {
                        self.all(parameters);
                    }
                }
                self.field(node, "body");
                self.b.scope = scope;
                UNKNOWN
            }
            "sizeof_expression" | "alignof_expression" | "offsetof_expression" => {
                self.all(node);
                self.b.expr(Expr::External)
            }
            "field_designator" => UNKNOWN,
            _ => {
                self.all(node);
                UNKNOWN
            }
        }
    }

    fn range_loop(&mut self, node: Node<'_>) {
        let scope = self.b.open_scope(NONE);
        self.field(node, "initializer");
        let ty = node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty));
        let over = self.field(node, "right");
        let value = if ty == UNKNOWN {
            self.b.expr(Expr::Element(over))
        } else {
            self.b.instance(ty)
        };
        if let Some(name) = node
            .child_by_field_name("declarator")
            .and_then(|d| Declarator::read(d).name)
        {
            let (text, from) = (self.b.text(name), name.start_byte());
            self.b.local(text, from, value);
        }
        self.field(node, "body");
        self.b.scope = scope;
    }

    fn member(&mut self, node: Node<'_>, kind: UseKind, want: Want) -> ExprId {
        let of = self.field(node, "argument");
        let Some(field) = node.child_by_field_name("field") else {
            return UNKNOWN;
        };
        match field.kind() {
            "field_identifier" | "destructor_name" => self.b.member_use(of, field, kind, want),
            "template_method" => {
                self.template_arguments(field);
                let name = field.child_by_field_name("name");
                name.map_or(UNKNOWN, |name| self.b.member_use(of, name, kind, want))
            }
            "qualified_identifier" => self.qualified(field, None, kind, want),
            _ => self.node(field),
        }
    }

    fn template_function(&mut self, node: Node<'_>, kind: UseKind, want: Want) -> ExprId {
        let arguments = self.template_arguments(node);
        let Some(name) = node.child_by_field_name("name") else {
            return UNKNOWN;
        };
        // A cast gives what it is told to.
        if matches!(
            self.b.text(name),
            "static_cast" | "dynamic_cast" | "const_cast" | "reinterpret_cast"
        ) {
            return arguments.first().copied().unwrap_or(UNKNOWN);
        }
        let found = self.b.name_use(name, kind, want);
        self.b.expr(Expr::Generic(found, arguments.into()))
    }

    fn call(&mut self, node: Node<'_>) -> ExprId {
        let Some(function) = node.child_by_field_name("function") else {
            return UNKNOWN;
        };
        let arguments = node.child_by_field_name("arguments").map(children).unwrap_or_default();
        let number = count(arguments.len());
        let (kind, want) = (UseKind::Call, Want::Call(number));
        let mut inner = function;
        while let Some(next) = children(inner)
            .first()
            .copied()
            .filter(|_| inner.kind() == "parenthesized_expression")
        {
            inner = next;
        }
        let callee = match inner.kind() {
            "identifier" => self.b.name_use(inner, kind, want),
            "field_expression" => self.member(inner, kind, want),
            "qualified_identifier" => self.qualified(inner, None, kind, want),
            "template_function" => self.template_function(inner, kind, want),
            _ => self.node(inner),
        };
        for argument in arguments {
            self.node(argument);
        }
        self.b.expr(Expr::Call(callee, number))
    }

    fn creation(&mut self, node: Node<'_>) -> ExprId {
        let arguments = node.child_by_field_name("arguments");
        let number = count(arguments.map(children).unwrap_or_default().len());
        let want = Want::Call(number);
        let ty = match node.child_by_field_name("type") {
            Some(ty) if ty.kind() == "type_identifier" => self.b.name_use(ty, UseKind::Call, want),
            Some(ty) if ty.kind() == "qualified_identifier" => self.qualified(ty, None, UseKind::Call, want),
            Some(ty) if ty.kind() == "template_type" => {
                let of = ty
                    .child_by_field_name("name")
                    .map_or(UNKNOWN, |name| self.b.name_use(name, UseKind::Call, want));
                let inside = self.template_arguments(ty);
                self.b.expr(Expr::Generic(of, inside.into()))
            }
            Some(ty) => self.ty(ty),
            None => UNKNOWN,
        };
        self.field(node, "placement");
        self.field(node, "declarator");
        if let Some(arguments) = arguments {
            self.all(arguments);
        }
        self.b.instance(ty)
    }
}
