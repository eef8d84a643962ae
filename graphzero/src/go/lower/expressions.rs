//! Selectors, calls and literals.

use tree_sitter::Node;

use super::Lower;
use crate::declared::build::{UNKNOWN, children, count};
use crate::declared::code::{Expr, ExprId, Want};
use crate::facts::UseKind;

impl Lower<'_> {
    pub fn selector(&mut self, node: Node<'_>, kind: UseKind, want: Want) -> ExprId {
        let of = self.field(node, "operand");
        match node.child_by_field_name("field") {
            Some(field) => self.b.member_use(of, field, kind, want),
            None => UNKNOWN,
        }
    }

    pub fn call(&mut self, node: Node<'_>) -> ExprId {
        let Some(function) = node.child_by_field_name("function") else {
            return UNKNOWN;
        };
        let arguments = node.child_by_field_name("arguments").map(children).unwrap_or_default();
        let number = count(arguments.len());
        let want = Want::Call(number);
        let mut inner = function;
        while let Some(next) = inner.named_child(0).filter(|_| {
            matches!(
                inner.kind(),
                "parenthesized_expression" | "type_instantiation_expression"
            )
        }) {
            inner = next;
        }
        let text = self.b.text(inner);
        let callee = match inner.kind() {
            "identifier" if matches!(text, "new" | "make") => {
                let ty = arguments.first().map_or(UNKNOWN, |ty| self.ty(*ty));
                for argument in arguments.iter().skip(1) {
                    self.node(*argument);
                }
                return self.b.instance(ty);
            }
            "identifier" => self.b.name_use(inner, UseKind::Call, want),
            "selector_expression" => self.selector(inner, UseKind::Call, want),
            _ => self.node(inner),
        };
        if let Some(types) = node.child_by_field_name("type_arguments") {
            for ty in children(types) {
                self.ty(ty);
            }
        }
        let values: Vec<ExprId> = arguments.into_iter().map(|argument| self.node(argument)).collect();
        if inner.kind() == "identifier" && text == "append" {
            return values.first().copied().unwrap_or(UNKNOWN);
        }
        self.b.expr(Expr::Call(callee, number))
    }

    pub fn composite(&mut self, node: Node<'_>) -> ExprId {
        let ty = self.field(node, "type");
        let value = self.b.instance(ty);
        if let Some(body) = node.child_by_field_name("body") {
            self.literal(body, value);
        }
        value
    }

    /// Walks the braces of a literal of a known type: keys of a struct are its fields, and braces inside those of a
    /// collection are of its elements' type.
    fn literal(&mut self, node: Node<'_>, of: ExprId) {
        if !self.b.enter(node) {
            return;
        }
        for element in children(node) {
            let (key, value) = match element.kind() {
                "keyed_element" => (
                    element.child_by_field_name("key").and_then(|k| k.named_child(0)),
                    element.child_by_field_name("value").and_then(|v| v.named_child(0)),
                ),
                _ => (None, element.named_child(0)),
            };
            if let Some(key) = key {
                if key.kind() == "identifier" {
                    self.b.member_use(of, key, UseKind::Value, Want::Value);
                } else {
                    self.node(key);
                }
            }
            match value {
                Some(value) if value.kind() == "literal_value" => {
                    let inside = self.b.expr(Expr::Element(of));
                    self.literal(value, inside);
                }
                Some(value) => {
                    self.node(value);
                }
                None => {}
            }
        }
        self.b.leave();
    }
}
