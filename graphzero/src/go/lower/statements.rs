//! Variables, assignments, loops and type switches.

use tree_sitter::Node;

use super::Lower;
use crate::declared::build::{UNKNOWN, children, count, fields};
use crate::declared::code::{Expr, ExprId};
use crate::facts::{DefId, Kind, NONE};

impl Lower<'_> {
    pub fn variables(&mut self, node: Node<'_>, kind: Kind) {
        let names: Vec<Node<'_>> = fields(node, "name").into_iter().filter(|n| n.is_named()).collect();
        let written = node.child_by_field_name("type");
        let top = self.b.owner == NONE;
        let first = self.b.facts.def_count() as DefId;
        if top {
            for name in &names {
                self.define(*name, node, kind, None);
            }
        }
        let owner = self.b.owner;
        if top && !names.is_empty() {
            self.b.owner = first;
        }
        let ty = written.map_or(UNKNOWN, |ty| self.ty(ty));
        let values = node.child_by_field_name("value").map(children).unwrap_or_default();
        let values: Vec<ExprId> = values.into_iter().map(|value| self.node(value)).collect();
        self.b.owner = owner;
        for (at, name) in names.iter().enumerate() {
            let value = if ty != UNKNOWN {
                self.b.instance(ty)
            } else {
                self.value_at(&values, at)
            };
            if top {
                self.b.item(first + at as DefId).value = value;
            } else {
                let text = self.b.text(*name);
                self.b.local(text, node.end_byte(), value);
            }
        }
    }

    /// Returns the value at a place of a list, which may come from one call with several results.
    fn value_at(&mut self, values: &[ExprId], at: usize) -> ExprId {
        match values {
            [one] => self.b.expr(Expr::Part(*one, count(at))),
            _ => values.get(at).copied().unwrap_or(UNKNOWN),
        }
    }

    pub fn short(&mut self, node: Node<'_>) {
        let values = node.child_by_field_name("right").map(children).unwrap_or_default();
        let values: Vec<ExprId> = values.into_iter().map(|value| self.node(value)).collect();
        self.targets(node, &values);
    }

    /// Declares the names on the left of `:=`, or walks what is assigned to.
    pub fn targets(&mut self, node: Node<'_>, values: &[ExprId]) {
        let declares = node.kind() == "short_var_declaration" || self.b.text(node).contains(":=");
        let left = node.child_by_field_name("left").map(children).unwrap_or_default();
        for (at, target) in left.into_iter().enumerate() {
            if declares && target.kind() == "identifier" {
                let value = self.value_at(values, at);
                let text = self.b.text(target);
                self.b.local(text, node.end_byte(), value);
            } else {
                self.node(target);
            }
        }
    }

    pub fn loop_statement(&mut self, node: Node<'_>) {
        let scope = self.b.open_scope(NONE);
        for child in children(node) {
            if child.kind() != "range_clause" {
                self.node(child);
                continue;
            }
            let over = self.field(child, "right");
            let element = self.b.expr(Expr::Element(over));
            let declares = self.b.text(child).contains(":=");
            let left = child.child_by_field_name("left").map(children).unwrap_or_default();
            let channel = left.len() == 1;
            for (at, target) in left.into_iter().enumerate() {
                if declares && target.kind() == "identifier" {
                    let value = if at == 1 || channel { element } else { UNKNOWN };
                    let text = self.b.text(target);
                    self.b.local(text, child.end_byte(), value);
                } else {
                    self.node(target);
                }
            }
        }
        self.b.scope = scope;
    }

    pub fn type_switch(&mut self, node: Node<'_>) {
        let outer = self.b.open_scope(NONE);
        self.field(node, "initializer");
        let value = self.field(node, "value");
        let alias = node.child_by_field_name("alias").and_then(|alias| alias.named_child(0));
        for case in children(node) {
            if !matches!(case.kind(), "type_case" | "default_case") {
                continue;
            }
            let types: Vec<ExprId> = fields(case, "type")
                .into_iter()
                .filter(Node::is_named)
                .map(|ty| self.ty(ty))
                .collect();
            let scope = self.b.open_scope(NONE);
            if let Some(alias) = alias {
                let of = match types[..] {
                    [one] => self.b.instance(one),
                    _ => value,
                };
                let text = self.b.text(alias);
                self.b.local(text, case.start_byte(), of);
            }
            let mut cursor = case.walk();
            let inside: Vec<Node<'_>> = case
                .named_children(&mut cursor)
                .filter(|child| child.kind() == "statement_list")
                .collect();
            for statements in inside {
                self.all(statements);
            }
            self.b.scope = scope;
        }
        self.b.scope = outer;
    }
}
