//! Expressions.

use super::*;

impl Lower<'_, '_, '_> {
    pub(super) fn exprs(&mut self, node: Node<'_>) -> Vec<ExprId> {
        children(node).into_iter().map(|child| self.expr(child)).collect()
    }

    pub(super) fn expr(&mut self, node: Node<'_>) -> ExprId {
        if node.start_byte() == node.end_byte() || !self.b.enter(node) {
            return UNKNOWN;
        }
        let value = self.expr_inner(node);
        self.b.leave();
        value
    }

    pub(super) fn expr_inner(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            "identifier" => self.b.name_use(node, UseKind::Value, false),
            "attribute" => {
                let of = self.field(node, "object");
                node.child_by_field_name("attribute")
                    .map_or(UNKNOWN, |name| self.b.member_use(of, name, UseKind::Value))
            }
            "call" => self.call(node),
            "keyword_argument" => self.field(node, "value"),
            "subscript" => {
                let value = self.field(node, "value");
                for child in children(node).into_iter().skip(1) {
                    self.expr(child);
                }
                self.b.expr(Expr::Element(value))
            }
            "named_expression" => {
                let value = self.field(node, "value");
                if let Some(name) = node.child_by_field_name("name") {
                    self.target(name, value);
                }
                value
            }
            "as_pattern" => {
                let value = children(node).first().map_or(UNKNOWN, |value| self.expr(*value));
                if let Some(alias) = node.child_by_field_name("alias") {
                    let object = if node.parent().is_some_and(|p| p.kind().starts_with("except")) {
                        self.b.expr(Expr::New(value))
                    } else {
                        value
                    };
                    for name in children(alias) {
                        self.target(name, object);
                    }
                    if alias.kind() == "identifier" {
                        self.target(alias, object);
                    }
                }
                value
            }
            "conditional_expression" => {
                let parts = self.exprs(node);
                let ends = vec![
                    parts.first().copied().unwrap_or(UNKNOWN),
                    parts.get(2).copied().unwrap_or(UNKNOWN),
                ];
                self.b.choice(ends)
            }
            "boolean_operator" => {
                let parts = self.exprs(node);
                self.b.choice(parts)
            }
            "parenthesized_expression" | "await" => self.exprs(node).first().copied().unwrap_or(UNKNOWN),
            "list" | "set" | "tuple" => {
                let parts = self.exprs(node);
                let element = self.b.choice(parts);
                self.b.expr(Expr::List(element))
            }
            "list_comprehension" | "set_comprehension" | "generator_expression" | "dictionary_comprehension" => {
                self.comprehension(node)
            }
            "lambda" => {
                let parameters = node.child_by_field_name("parameters").map(children).unwrap_or_default();
                let mut names = Vec::new();
                for parameter in parameters {
                    names.extend(self.parameter(parameter).0);
                }
                let scope = self.open_scope();
                for name in names {
                    let text = self.b.text(name);
                    self.b.bind(text, Binding::Value(UNKNOWN));
                }
                let function = std::mem::replace(&mut self.function, true);
                self.field(node, "body");
                self.function = function;
                self.b.scope = scope;
                UNKNOWN
            }
            "assignment" | "augmented_assignment" => self.assignment(node),
            "type" => self.annotation(node),
            "string" => {
                // Only what is interpolated is code.
                for child in children(node) {
                    if child.kind() == "interpolation" {
                        self.exprs(child);
                    }
                }
                UNKNOWN
            }
            "function_definition"
            | "class_definition"
            | "decorated_definition"
            | "return_statement"
            | "for_statement"
            | "block"
            | "import_from_statement"
            | "import_statement"
            | "expression_statement"
            | "if_statement" => {
                self.statement(node);
                UNKNOWN
            }
            _ => {
                for child in children(node) {
                    self.expr(child);
                }
                UNKNOWN
            }
        }
    }

    pub(super) fn comprehension(&mut self, node: Node<'_>) -> ExprId {
        let scope = self.open_scope();
        let function = std::mem::replace(&mut self.function, true);
        let parts = children(node);
        for part in parts.iter().filter(|part| part.kind() == "for_in_clause") {
            let iterated = self.field(*part, "right");
            let element = self.b.expr(Expr::Element(iterated));
            if let Some(left) = part.child_by_field_name("left") {
                self.target(left, element);
            }
        }
        let mut value = UNKNOWN;
        for part in parts.iter().filter(|part| part.kind() != "for_in_clause") {
            let found = self.expr(*part);
            if value == UNKNOWN {
                value = found;
            }
        }
        self.function = function;
        self.b.scope = scope;
        self.b.expr(Expr::List(value))
    }

    pub(super) fn call(&mut self, node: Node<'_>) -> ExprId {
        let Some(function) = node.child_by_field_name("function") else {
            return UNKNOWN;
        };
        let callee = match function.kind() {
            "identifier" => {
                if self.b.text(function) == "super"
                    && let Some(class) = self.b.class
                {
                    self.field(node, "arguments");
                    return self.b.expr(Expr::Super(class));
                }
                self.b.name_use(function, UseKind::Call, false)
            }
            "attribute" => {
                let of = self.field(function, "object");
                match function.child_by_field_name("attribute") {
                    Some(name) => self.b.member_use(of, name, UseKind::Call),
                    None => UNKNOWN,
                }
            }
            _ => self.expr(function),
        };
        let mut args = Vec::new();
        for argument in node.child_by_field_name("arguments").map(children).unwrap_or_default() {
            args.push(self.expr(argument));
        }
        // `cast(T, value)`: something of that type.
        if self.b.text(function).rsplit('.').next() == Some("cast") && args.len() == 2 {
            return self.b.expr(Expr::Instance(args[0]));
        }
        self.b.call(callee)
    }
}
