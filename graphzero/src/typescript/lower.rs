//! From a syntax tree to the facts of one TypeScript or JavaScript file.

mod declarations;

use tree_sitter::Node;
use zero_contracts::Error;

use super::TypeScriptLanguage;
use crate::code::Code;
use crate::facts::{DefId, FileFacts, Kind, NONE, Span, UseKind};
use crate::language::Lang;
use crate::objects::build::{Builder, UNKNOWN, children};
use crate::objects::code::{Binding, Expr, ExprId, Link, Scope};
use crate::parse::{Parsing, errors};

/// Computes the facts of a file.
///
/// # Errors
/// `cancelled` and `deadline` from the token.
pub fn facts(lang: Lang, text: &str, parsing: &mut Parsing<'_>) -> Result<FileFacts, Error> {
    let tree = parsing.parse(&TypeScriptLanguage, lang, text.as_bytes())?;
    let mut lower = Lower {
        b: Builder::new(lang, text),
        returns: Vec::new(),
        functions: 0,
    };
    for error in errors(&tree) {
        lower.b.facts.error(error);
        lower.b.facts.opaque(error);
    }
    if tree.root_node().has_error() {
        // What recovery made of the rest may be mistaken, too.
        lower.b.facts.opaque(Span::from(tree.root_node()));
    }
    lower.statements(tree.root_node());
    let Builder { facts, code, .. } = lower.b;
    Ok(facts.finish(Code::Objects(Box::new(code))))
}

/// The walk over one file.
pub struct Lower<'t> {
    /// What is gathered.
    pub b: Builder<'t>,
    /// Values that the innermost function returns.
    pub returns: Vec<ExprId>,
    /// How many functions are around: variables inside are local.
    pub functions: usize,
}

impl Lower<'_> {
    /// Opens a scope; the caller sets the returned one again.
    pub fn open_scope(&mut self) -> u32 {
        let scope = self.b.scope;
        self.b.code.scopes.push(Scope {
            parent: scope,
            class: false,
            names: Vec::new(),
        });
        self.b.scope = self.b.code.scopes.len() as u32 - 1;
        scope
    }

    /// Walks a list of statements.
    pub fn statements(&mut self, node: Node<'_>) {
        for child in children(node) {
            self.statement(child);
        }
    }

    /// Walks a statement.
    pub fn statement(&mut self, node: Node<'_>) {
        if !self.b.enter(node) {
            return;
        }
        if !self.declaration(node) {
            self.plain_statement(node);
        }
        self.b.leave();
    }

    fn plain_statement(&mut self, node: Node<'_>) {
        match node.kind() {
            "statement_block" => {
                let scope = self.open_scope();
                self.statements(node);
                self.b.scope = scope;
            }
            "return_statement" => {
                let value = children(node).first().map_or(UNKNOWN, |value| self.expr(*value));
                self.returns.push(value);
            }
            "for_in_statement" => {
                let scope = self.open_scope();
                let iterated = self.field(node, "right");
                let element = self.b.expr(Expr::Element(iterated));
                if let Some(left) = node.child_by_field_name("left") {
                    let declares = node.child_by_field_name("kind").is_some();
                    if declares {
                        self.pattern(left, element)
                    } else {
                        let _ = self.expr(left);
                    }
                }
                if let Some(body) = node.child_by_field_name("body") {
                    self.statement(body);
                }
                self.b.scope = scope;
            }
            "for_statement" => {
                let scope = self.open_scope();
                self.statements(node);
                self.b.scope = scope;
            }
            "catch_clause" => {
                let scope = self.open_scope();
                if let Some(parameter) = node.child_by_field_name("parameter") {
                    self.pattern(parameter, UNKNOWN);
                }
                if let Some(body) = node.child_by_field_name("body") {
                    self.statement(body);
                }
                self.b.scope = scope;
            }
            "expression_statement"
            | "if_statement"
            | "else_clause"
            | "while_statement"
            | "do_statement"
            | "try_statement"
            | "finally_clause"
            | "switch_statement"
            | "switch_body"
            | "switch_case"
            | "switch_default"
            | "labeled_statement"
            | "throw_statement" => self.statements(node),
            "statement_identifier" | "empty_statement" | "break_statement" | "continue_statement" => {}
            _ => {
                self.expr(node);
            }
        }
    }

    /// Walks the expression in a field.
    pub fn field(&mut self, node: Node<'_>, name: &str) -> ExprId {
        node.child_by_field_name(name).map_or(UNKNOWN, |child| self.expr(child))
    }

    fn exprs(&mut self, node: Node<'_>) -> Vec<ExprId> {
        children(node).into_iter().map(|child| self.expr(child)).collect()
    }

    /// Walks an expression.
    pub fn expr(&mut self, node: Node<'_>) -> ExprId {
        if !self.b.enter(node) {
            return UNKNOWN;
        }
        let value = self.expr_inner(node);
        self.b.leave();
        value
    }

    fn expr_inner(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            "identifier" => {
                if self.b.text(node) == "undefined" {
                    return UNKNOWN;
                }
                self.b.name_use(node, UseKind::Value, false)
            }
            "this" => self.b.class.map_or(UNKNOWN, |class| self.b.expr(Expr::This(class))),
            "super" => self.b.class.map_or(UNKNOWN, |class| self.b.expr(Expr::Super(class))),
            "member_expression" => self.member(node, UseKind::Value),
            "subscript_expression" => {
                let of = self.field(node, "object");
                self.field(node, "index");
                self.b.expr(Expr::Element(of))
            }
            "call_expression" => {
                let function = node.child_by_field_name("function");
                let callee = match function.map(|f| (f, f.kind())) {
                    Some((function, "identifier")) => self.b.name_use(function, UseKind::Call, false),
                    Some((function, "member_expression")) => self.member(function, UseKind::Call),
                    Some((function, _)) => self.expr(function),
                    None => UNKNOWN,
                };
                self.type_args(node);
                if let Some(arguments) = node.child_by_field_name("arguments") {
                    self.exprs(arguments);
                }
                self.b.expr(Expr::Call(callee))
            }
            "new_expression" => {
                let class = match node.child_by_field_name("constructor") {
                    Some(class) if class.kind() == "identifier" => self.b.name_use(class, UseKind::Call, false),
                    Some(class) => self.expr(class),
                    None => UNKNOWN,
                };
                self.type_args(node);
                if let Some(arguments) = node.child_by_field_name("arguments") {
                    self.exprs(arguments);
                }
                self.b.expr(Expr::New(class))
            }
            "arrow_function" | "function_expression" | "generator_function" | "function" => {
                self.function_body(node, None);
                UNKNOWN
            }
            "class" => {
                self.class(node, None);
                UNKNOWN
            }
            "assignment_expression" | "augmented_assignment_expression" => {
                let value = self.field(node, "right");
                if let Some(left) = node.child_by_field_name("left") {
                    if matches!(left.kind(), "object_pattern" | "array_pattern") {
                        self.exprs(left);
                    } else {
                        self.expr(left);
                    }
                }
                value
            }
            "as_expression" | "satisfies_expression" => {
                let parts = children(node);
                let value = parts.first().map_or(UNKNOWN, |value| self.expr(*value));
                let ty = parts.get(1).map_or(UNKNOWN, |ty| self.ty(*ty));
                if ty == UNKNOWN { value } else { ty }
            }
            "type_assertion" => {
                let parts = children(node);
                let ty = parts
                    .first()
                    .map_or(UNKNOWN, |ty| children(*ty).first().map_or(UNKNOWN, |t| self.ty(*t)));
                let value = parts.get(1).map_or(UNKNOWN, |value| self.expr(*value));
                if ty == UNKNOWN { value } else { ty }
            }
            "non_null_expression" | "parenthesized_expression" | "await_expression" => {
                self.exprs(node).first().copied().unwrap_or(UNKNOWN)
            }
            "sequence_expression" => self.exprs(node).last().copied().unwrap_or(UNKNOWN),
            "ternary_expression" => {
                self.field(node, "condition");
                let all = vec![self.field(node, "consequence"), self.field(node, "alternative")];
                self.b.choice(all)
            }
            "binary_expression" => {
                let all = vec![self.field(node, "left"), self.field(node, "right")];
                let operator = node
                    .child_by_field_name("operator")
                    .map(|op| op.kind())
                    .unwrap_or_default();
                if matches!(operator, "||" | "&&" | "??") {
                    self.b.choice(all)
                } else {
                    UNKNOWN
                }
            }
            "array" => {
                let all = self.exprs(node);
                let element = self.b.choice(all);
                self.b.expr(Expr::List(element))
            }
            "object" => self.object(node),
            "property_identifier"
            | "private_property_identifier"
            | "string"
            | "number"
            | "regex"
            | "true"
            | "false"
            | "null"
            | "undefined" => UNKNOWN,
            "shorthand_property_identifier" => self.b.name_use(node, UseKind::Value, false),
            "type_annotation" | "type_arguments" => {
                self.ty(node);
                UNKNOWN
            }
            kind if kind.ends_with("_statement") || kind.ends_with("_declaration") || kind == "statement_block" => {
                self.statement(node);
                UNKNOWN
            }
            _ => {
                self.exprs(node);
                UNKNOWN
            }
        }
    }

    fn type_args(&mut self, node: Node<'_>) {
        for arg in node
            .child_by_field_name("type_arguments")
            .map(children)
            .unwrap_or_default()
        {
            self.ty(arg);
        }
    }

    fn member(&mut self, node: Node<'_>, kind: UseKind) -> ExprId {
        let of = self.field(node, "object");
        match node.child_by_field_name("property") {
            Some(name) if matches!(name.kind(), "property_identifier" | "private_property_identifier") => {
                self.b.member_use(of, name, kind)
            }
            _ => UNKNOWN,
        }
    }

    fn object(&mut self, node: Node<'_>) -> ExprId {
        for member in children(node) {
            match member.kind() {
                "pair" => {
                    if let Some(key) = member
                        .child_by_field_name("key")
                        .filter(|k| k.kind() == "computed_property_name")
                    {
                        self.exprs(key);
                    }
                    self.field(member, "value");
                }
                "method_definition" => {
                    self.function_body(member, None);
                }
                _ => {
                    self.expr(member);
                }
            }
        }
        UNKNOWN
    }

    /// Binds the names of a pattern to parts of a value.
    pub fn pattern(&mut self, node: Node<'_>, value: ExprId) {
        match node.kind() {
            "identifier" | "shorthand_property_identifier_pattern" => {
                let text = self.b.text(node);
                self.b.bind(text, Binding::Value(value));
            }
            "object_pattern" => {
                for part in children(node) {
                    match part.kind() {
                        "shorthand_property_identifier_pattern" => self.shorthand(part, value),
                        "object_assignment_pattern" => {
                            self.field(part, "right");
                            if let Some(left) = part.child_by_field_name("left") {
                                self.shorthand(left, value);
                            }
                        }
                        "pair_pattern" => {
                            let inner = match part.child_by_field_name("key") {
                                Some(key) if key.kind() == "property_identifier" => {
                                    self.b.member_use(value, key, UseKind::Value)
                                }
                                _ => UNKNOWN,
                            };
                            if let Some(target) = part.child_by_field_name("value") {
                                self.pattern(target, inner);
                            }
                        }
                        _ => self.pattern(part, UNKNOWN),
                    }
                }
            }
            "array_pattern" => {
                let element = self.b.expr(Expr::Element(value));
                for part in children(node) {
                    self.pattern(part, element);
                }
            }
            "assignment_pattern" => {
                let default = self.field(node, "right");
                if let Some(left) = node.child_by_field_name("left") {
                    self.pattern(left, if value == UNKNOWN { default } else { value });
                }
            }
            "rest_pattern" => {
                for part in children(node) {
                    self.pattern(part, UNKNOWN);
                }
            }
            "this" => {}
            _ => {
                self.expr(node);
            }
        }
    }

    /// `{name}` binds a variable and mentions the member.
    fn shorthand(&mut self, node: Node<'_>, value: ExprId) {
        let inner = if value == UNKNOWN {
            UNKNOWN
        } else {
            self.b.member_use(value, node, UseKind::Value)
        };
        let text = self.b.text(node);
        self.b.bind(text, Binding::Value(inner));
    }

    /// Walks parameters in the current scope. Parameters of a constructor with a modifier are fields of `class`.
    pub fn parameters(&mut self, node: Node<'_>, class: Option<DefId>) {
        if let Some(parameter) = node.child_by_field_name("parameter") {
            self.pattern(parameter, UNKNOWN);
        }
        for parameter in node.child_by_field_name("parameters").map(children).unwrap_or_default() {
            match parameter.kind() {
                "required_parameter" | "optional_parameter" => {
                    let ty = parameter.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty));
                    let default = self.field(parameter, "value");
                    let value = if ty == UNKNOWN { default } else { ty };
                    let Some(pattern) = parameter.child_by_field_name("pattern") else {
                        continue;
                    };
                    self.pattern(pattern, value);
                    let modified = children(parameter).iter().any(|c| c.kind() == "accessibility_modifier")
                        || self.b.text(parameter).starts_with("readonly ");
                    if let Some(class) = class.filter(|_| modified && pattern.kind() == "identifier") {
                        let owner = std::mem::replace(&mut self.b.owner, class);
                        let def = self.b.define(pattern, parameter, Kind::Field, None);
                        self.b.owner = owner;
                        self.b.item(def).values.push(value);
                    }
                }
                "decorator" => {
                    self.expr(parameter);
                }
                _ => self.pattern(parameter, UNKNOWN),
            }
        }
    }

    /// Walks parameters and body of a function in a scope of their own; its results become those of `def`.
    pub fn function_body(&mut self, node: Node<'_>, def: Option<DefId>) {
        let own = def.unwrap_or(self.b.owner);
        let owner = std::mem::replace(&mut self.b.owner, own);
        let scope = self.open_scope();
        let arrow = node.kind() == "arrow_function";
        let class = self.b.class;
        if !arrow && def.is_none() {
            // `this` of a plain function is whatever it is called on.
            self.b.class = None;
        }
        let returns = std::mem::take(&mut self.returns);
        self.functions += 1;
        self.type_parameters(node);
        let constructor = def.is_some_and(|d| self.b.facts.def_ref(d).is_some_and(|d| d.kind == Kind::Constructor));
        self.parameters(node, class.filter(|_| constructor));
        let ret = node
            .child_by_field_name("return_type")
            .map_or(UNKNOWN, |ty| self.ty(ty));
        let mut values = if ret == UNKNOWN { Vec::new() } else { vec![ret] };
        if let Some(body) = node.child_by_field_name("body") {
            if body.kind() == "statement_block" {
                self.statements(body);
            } else {
                let value = self.expr(body);
                self.returns.push(value);
            }
        }
        let found = std::mem::replace(&mut self.returns, returns);
        if values.is_empty() {
            values.extend(found.into_iter().filter(|&e| e != UNKNOWN).take(8));
        }
        self.functions -= 1;
        self.b.class = class;
        self.b.scope = scope;
        self.b.owner = owner;
        if let Some(def) = def {
            self.b.item(def).values = values;
        }
    }

    /// Adds a name that is mentioned in an import or export.
    pub fn mention(&mut self, node: Node<'_>, link: Link) {
        let text = self.b.text(node);
        self.b.add_use(text, node.start_byte() as u32, UseKind::Import, link);
    }

    /// Returns the id of a name.
    pub fn id(&mut self, text: &str) -> u32 {
        if text.is_empty() { NONE } else { self.b.facts.name(text) }
    }
}
