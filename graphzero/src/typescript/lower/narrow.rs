//! Conditions that tell more of a variable: compared members, `instanceof`, functions that test their argument.

use tree_sitter::Node;

use super::Lower;
use crate::facts::NONE;
use crate::objects::build::{UNKNOWN, children};
use crate::objects::code::{Binding, Expr, ExprId};

impl Lower<'_> {
    /// Walks an `if`; inside its branches the condition is known to hold, or not to.
    pub fn if_statement(&mut self, node: Node<'_>) {
        let condition = node.child_by_field_name("condition");
        if let Some(condition) = condition {
            self.expr(condition);
        }
        for (part, holds) in [("consequence", true), ("alternative", false)] {
            let Some(part) = node.child_by_field_name(part) else {
                continue;
            };
            let scope = self.open_scope();
            condition.into_iter().for_each(|c| self.narrow(c, holds));
            self.statement(part);
            self.b.scope = scope;
        }
    }

    /// Walks a `switch`; in a case the compared member is what the case says.
    pub fn switch(&mut self, node: Node<'_>) {
        let value = node.child_by_field_name("value");
        if let Some(value) = value {
            self.expr(value);
        }
        let subject = value.and_then(|value| self.subject(value));
        let scope = self.open_scope();
        let mut equal: Vec<ExprId> = Vec::new();
        for case in node.child_by_field_name("body").map(children).unwrap_or_default() {
            let value = case.child_by_field_name("value");
            if let Some(value) = value {
                self.expr(value);
                let value = self.quiet(value);
                equal.push(value);
            }
            let body: Vec<Node<'_>> = children(case)
                .into_iter()
                .filter(|child| Some(child.id()) != value.map(|v| v.id()))
                .collect();
            if body.is_empty() {
                // It falls through to the next.
                continue;
            }
            let scope = match &subject {
                Some((variable, member)) if case.kind() == "switch_case" => {
                    let scope = self.open_scope();
                    self.narrow_member(variable, member, std::mem::take(&mut equal), false);
                    scope
                }
                _ => self.b.scope,
            };
            for statement in body {
                self.statement(statement);
            }
            self.b.scope = scope;
            equal.clear();
        }
        self.b.scope = scope;
    }

    /// After an `if` whose branch never goes on, its condition does not hold in the rest of the block: a scope of its own.
    pub fn narrow_rest(&mut self, node: Node<'_>) {
        let branch = node.child_by_field_name("consequence");
        if node.kind() != "if_statement"
            || node.child_by_field_name("alternative").is_some()
            || !branch.is_some_and(leaves)
        {
            return;
        }
        let scope = self.open_scope();
        if let Some(condition) = node.child_by_field_name("condition") {
            self.narrow(condition, false);
        }
        if self.b.code.scopes[self.b.scope as usize].names.is_empty() {
            self.b.scope = scope;
        }
    }

    /// Binds what a condition tells of variables, in the current scope.
    pub fn narrow(&mut self, condition: Node<'_>, holds: bool) {
        match condition.kind() {
            "parenthesized_expression" => {
                for inner in children(condition) {
                    self.narrow(inner, holds);
                }
            }
            "unary_expression" => {
                let not = condition
                    .child_by_field_name("operator")
                    .is_some_and(|op| op.kind() == "!");
                if let Some(argument) = condition.child_by_field_name("argument").filter(|_| not) {
                    self.narrow(argument, !holds);
                }
            }
            "binary_expression" => self.narrow_binary(condition, holds),
            "call_expression" if holds => {
                let arguments = condition.child_by_field_name("arguments").map(children);
                let first = arguments.and_then(|arguments| arguments.first().copied());
                if let (Some(function), Some(first)) = (condition.child_by_field_name("function"), first) {
                    let guard = self.quiet(function);
                    self.guard_variable(first, guard);
                }
            }
            _ => {}
        }
    }

    fn narrow_binary(&mut self, node: Node<'_>, holds: bool) {
        let (Some(left), Some(operator), Some(right)) = (
            node.child_by_field_name("left"),
            node.child_by_field_name("operator"),
            node.child_by_field_name("right"),
        ) else {
            return;
        };
        match operator.kind() {
            "&&" if holds => {
                self.narrow(left, true);
                self.narrow(right, true);
            }
            "||" if !holds => {
                self.narrow(left, false);
                self.narrow(right, false);
            }
            "===" | "==" | "!==" | "!=" => {
                let equal = operator.kind().starts_with('=') == holds;
                for (subject, value) in [(left, right), (right, left)] {
                    if let Some((variable, member)) = self.subject(subject) {
                        let value = self.quiet(value);
                        self.narrow_member(&variable, &member, vec![value], !equal);
                    }
                }
            }
            "instanceof" if holds => {
                let class = self.quiet(right);
                self.guard_variable(left, class);
            }
            _ => {}
        }
    }

    /// Returns variable and member of `variable.member`, if the variable is local.
    fn subject(&mut self, node: Node<'_>) -> Option<(String, String)> {
        match node.kind() {
            "parenthesized_expression" => children(node).first().and_then(|inner| self.subject(*inner)),
            "member_expression" => {
                let (object, property) = (
                    node.child_by_field_name("object")?,
                    node.child_by_field_name("property")?,
                );
                let plain = object.kind() == "identifier" && property.kind() == "property_identifier";
                let (object, property) = (self.b.text(object), self.b.text(property));
                (plain && self.is_local(object)).then(|| (object.to_owned(), property.to_owned()))
            }
            _ => None,
        }
    }

    fn is_local(&mut self, name: &str) -> bool {
        let name = self.b.facts.name(name);
        let mut at = self.b.scope;
        while at != NONE {
            let scope = &self.b.code.scopes[at as usize];
            if let Some((_, binding)) = scope.names.iter().find(|(n, _)| *n == name) {
                return matches!(binding, Binding::Value(_));
            }
            at = scope.parent;
        }
        false
    }

    /// Returns the scope around, where a variable is what it was before.
    fn outer(&self) -> u32 {
        self.b.code.scopes[self.b.scope as usize].parent
    }

    /// Returns what a variable is before the current scope tells more: what it was told already there, else outside.
    fn before(&mut self, variable: &str) -> ExprId {
        if let Some(Binding::Value(value)) = self.b.bound_here(variable) {
            return value;
        }
        let (scope, name) = (self.outer(), self.b.facts.name(variable));
        self.b.expr(Expr::Name { scope, name, ty: false })
    }

    fn narrow_member(&mut self, variable: &str, member: &str, equal: Vec<ExprId>, not: bool) {
        if equal.iter().all(|&e| e == UNKNOWN) {
            return;
        }
        let (of, member) = (self.before(variable), self.b.facts.name(member));
        let value = self.b.expr(Expr::Narrow {
            of,
            member,
            equal: equal.into(),
            not,
        });
        self.b.rebind(variable, Binding::Value(value));
    }

    fn guard_variable(&mut self, variable: Node<'_>, guard: ExprId) {
        let text = self.b.text(variable);
        if variable.kind() != "identifier" || guard == UNKNOWN || !self.is_local(text) {
            return;
        }
        let of = self.before(text);
        let value = self.b.expr(Expr::Guarded { of, guard });
        self.b.rebind(text, Binding::Value(value));
    }

    /// Returns a name, a chain of members or a text as a value, without mentioning it.
    fn quiet(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            "identifier" => {
                let (scope, name) = (self.outer(), self.b.facts.name(self.b.text(node)));
                self.b.expr(Expr::Name { scope, name, ty: false })
            }
            "member_expression" => {
                let of = node.child_by_field_name("object").map_or(UNKNOWN, |of| self.quiet(of));
                match node.child_by_field_name("property") {
                    Some(property) if of != UNKNOWN => {
                        let name = self.b.facts.name(self.b.text(property));
                        self.b.expr(Expr::Member { of, name, ty: false })
                    }
                    _ => UNKNOWN,
                }
            }
            "string" => self.literal(node),
            "parenthesized_expression" => children(node).first().map_or(UNKNOWN, |inner| self.quiet(*inner)),
            _ => UNKNOWN,
        }
    }
}

/// Tells whether a statement never goes on to the next.
fn leaves(node: Node<'_>) -> bool {
    match node.kind() {
        "return_statement" | "throw_statement" | "continue_statement" | "break_statement" => true,
        "statement_block" => children(node).last().copied().is_some_and(leaves),
        _ => false,
    }
}
