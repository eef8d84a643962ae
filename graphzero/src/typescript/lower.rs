//! From a syntax tree to the facts of one TypeScript or JavaScript file.

mod declarations;
mod narrow;

use tree_sitter::Node;
use zero_contracts::Error;

use super::TypeScriptLanguage;
use crate::code::Code;
use crate::facts::{DefId, FileFacts, Kind, NONE, Span, UseKind};
use crate::language::Lang;
use crate::objects::build::{Builder, UNKNOWN, children};
use crate::objects::code::{Binding, Call, Expr, ExprId, Function, Link, Scope};
use crate::parse::{Parsing, errors};

/// Computes the facts of a file.
///
/// # Errors
/// `cancelled` and `deadline` from the token.
pub fn facts(lang: Lang, text: &str, parsing: &mut Parsing<'_>) -> Result<FileFacts, Error> {
    let mut tree = parsing.parse(&TypeScriptLanguage, lang, text.as_bytes())?;
    if tree.root_node().has_error()
        && let Some(apart) = apart(text)
    {
        let again = parsing.parse(&TypeScriptLanguage, lang, apart.as_bytes())?;
        let wrong = |tree: &tree_sitter::Tree| errors(tree).iter().map(|e| e.end - e.start + 1).sum::<u32>();
        if wrong(&again) < wrong(&tree) {
            tree = again;
        }
    }
    let mut lower = Lower {
        b: Builder::new(lang, text),
        returns: Vec::new(),
        functions: 0,
        this: None,
        expected: UNKNOWN,
        expected_return: UNKNOWN,
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

/// Sets signatures apart that follow one another on lines of their own without a semicolon: the grammar takes a `<` at
/// the beginning of a line for arguments of the type before it. The last byte of the line before becomes a semicolon,
/// so that places stay what they are. Returns nothing if there are none.
fn apart(text: &str) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let mut found = false;
    // The last byte of code before the line.
    let mut before = b';';
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let code = line.trim();
        let comment = code.is_empty() || code.starts_with("//") || code.starts_with("/*") || code.starts_with('*');
        if code.starts_with('<')
            && at > 0
            && (before.is_ascii_alphanumeric() || matches!(before, b'>' | b')' | b']' | b'}' | b'_'))
        {
            bytes[at - 1] = b';';
            found = true;
        }
        if !comment {
            before = match code.strip_suffix("=>") {
                Some(_) => b'=',
                None => code.bytes().last().unwrap_or(b';'),
            };
        }
        at += line.len();
    }
    found.then(|| String::from_utf8(bytes).unwrap_or_default())
}

/// The walk over one file.
pub struct Lower<'t> {
    /// What is gathered.
    pub b: Builder<'t>,
    /// Values that the innermost function returns.
    pub returns: Vec<ExprId>,
    /// How many functions are around: variables inside are local.
    pub functions: usize,
    /// The class or interface that the type `this` means.
    pub this: Option<DefId>,
    /// What the place of the next expression expects, for that expression alone.
    pub expected: ExprId,
    /// What the innermost function is expected to give.
    pub expected_return: ExprId,
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
        let outer = self.b.scope;
        for child in children(node) {
            self.statement(child);
            self.narrow_rest(child);
        }
        self.b.scope = outer;
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
                let expected = self.expected_return;
                let value = children(node)
                    .first()
                    .map_or(UNKNOWN, |value| self.expr_as(*value, expected));
                self.returns.push(value);
            }
            "if_statement" => self.if_statement(node),
            "switch_statement" => self.switch(node),
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
            | "else_clause"
            | "while_statement"
            | "do_statement"
            | "try_statement"
            | "finally_clause"
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

    /// Walks an expression whose place expects something.
    pub fn expr_as(&mut self, node: Node<'_>, expected: ExprId) -> ExprId {
        self.expected = expected;
        self.expr(node)
    }

    /// Walks an expression.
    pub fn expr(&mut self, node: Node<'_>) -> ExprId {
        let expected = std::mem::replace(&mut self.expected, UNKNOWN);
        if !self.b.enter(node) {
            return UNKNOWN;
        }
        let value = self.expr_inner(node, expected);
        self.b.leave();
        value
    }

    fn expr_inner(&mut self, node: Node<'_>, expected: ExprId) -> ExprId {
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
                let index = self.field(node, "index");
                match self.b.code.exprs[index as usize] {
                    Expr::Literal(name) => self.b.expr(Expr::Member { of, name, ty: false }),
                    _ => self.b.expr(Expr::Element(of)),
                }
            }
            "call_expression" => self.call(node, "function", expected),
            "new_expression" => self.call(node, "constructor", expected),
            "arrow_function" | "function_expression" | "generator_function" | "function" => {
                let function = self.function_body(node, None, expected);
                self.b.expr(Expr::Function(function))
            }
            "class" => {
                self.class(node, None);
                UNKNOWN
            }
            "assignment_expression" | "augmented_assignment_expression" => {
                let mut target = UNKNOWN;
                if let Some(left) = node.child_by_field_name("left") {
                    if matches!(left.kind(), "object_pattern" | "array_pattern") {
                        self.exprs(left);
                    } else {
                        target = self.expr(left);
                    }
                }
                node.child_by_field_name("right")
                    .map_or(UNKNOWN, |right| self.expr_as(right, target))
            }
            "as_expression" | "satisfies_expression" => {
                let parts = children(node);
                let ty = parts.get(1).map_or(UNKNOWN, |ty| self.written(*ty));
                let value = parts.first().map_or(UNKNOWN, |value| self.expr_as(*value, ty));
                // `satisfies` checks a value and leaves it what it is.
                let stays = node.kind() == "satisfies_expression" && value != UNKNOWN;
                if ty == UNKNOWN || stays { value } else { ty }
            }
            "type_assertion" => {
                let parts = children(node);
                let ty = parts.first().map_or(UNKNOWN, |ty| {
                    children(*ty).first().map_or(UNKNOWN, |t| self.written(*t))
                });
                let value = parts.get(1).map_or(UNKNOWN, |value| self.expr_as(*value, ty));
                if ty == UNKNOWN { value } else { ty }
            }
            "non_null_expression" | "parenthesized_expression" | "await_expression" => children(node)
                .first()
                .map_or(UNKNOWN, |inner| self.expr_as(*inner, expected)),
            "sequence_expression" => self.exprs(node).last().copied().unwrap_or(UNKNOWN),
            "ternary_expression" => {
                self.field(node, "condition");
                let condition = node.child_by_field_name("condition");
                let mut all = Vec::new();
                for (part, holds) in [("consequence", true), ("alternative", false)] {
                    let scope = self.open_scope();
                    condition.into_iter().for_each(|c| self.narrow(c, holds));
                    if let Some(part) = node.child_by_field_name(part) {
                        all.push(self.expr_as(part, expected));
                    }
                    self.b.scope = scope;
                }
                self.b.choice(all)
            }
            "binary_expression" => {
                let operator = node
                    .child_by_field_name("operator")
                    .map(|op| op.kind())
                    .unwrap_or_default();
                let logical = matches!(operator, "||" | "&&" | "??");
                let expected = if logical { expected } else { UNKNOWN };
                let (left, right) = (node.child_by_field_name("left"), node.child_by_field_name("right"));
                let mut all = vec![left.map_or(UNKNOWN, |left| self.expr_as(left, expected))];
                let scope = self.open_scope();
                if let (Some(left), "&&" | "||") = (left, operator) {
                    self.narrow(left, operator == "&&");
                }
                all.push(right.map_or(UNKNOWN, |right| self.expr_as(right, expected)));
                self.b.scope = scope;
                match operator {
                    "&&" => all[1],
                    "||" | "??" => self.b.choice(all),
                    _ => UNKNOWN,
                }
            }
            "array" => {
                let expected = match expected {
                    UNKNOWN => UNKNOWN,
                    expected => self.b.expr(Expr::Element(expected)),
                };
                let mut all = Vec::new();
                for part in children(node) {
                    let value = self.expr_as(part, expected);
                    all.push(if part.kind() == "spread_element" {
                        self.b.expr(Expr::Element(value))
                    } else {
                        value
                    });
                }
                let element = self.b.choice(all);
                self.b.expr(Expr::List(element))
            }
            "spread_element" => children(node).first().map_or(UNKNOWN, |inner| self.expr(*inner)),
            "object" => self.object(node, expected),
            "string" => self.literal(node),
            "number" | "regex" | "true" | "false" => self.b.expr(Expr::Primitive),
            "property_identifier" | "private_property_identifier" | "null" | "undefined" => UNKNOWN,
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

    /// Walks a call or the making of an object: the callee, then arguments as what the callee expects.
    fn call(&mut self, node: Node<'_>, field: &str, expected: ExprId) -> ExprId {
        let function = node.child_by_field_name(field);
        let callee = match function.map(|f| (f, f.kind())) {
            Some((function, "identifier")) => self.b.name_use(function, UseKind::Call, false),
            Some((function, "member_expression")) => self.member(function, UseKind::Call),
            Some((function, _)) => self.expr(function),
            None => UNKNOWN,
        };
        let types = node.child_by_field_name("type_arguments").map(children);
        let types = types.unwrap_or_default().into_iter().map(|ty| self.ty(ty)).collect();
        let call = self.b.code.calls.len() as u32;
        self.b.code.calls.push(Call {
            callee,
            args: Box::default(),
            types,
            expected,
            new: field == "constructor",
        });
        let mut args = Vec::new();
        let arguments = node.child_by_field_name("arguments");
        match arguments.map(|arguments| (arguments, arguments.kind())) {
            Some((arguments, "arguments")) => {
                for (index, argument) in (0..).zip(children(arguments)) {
                    let expected = match (callee, argument.kind()) {
                        // Only these look at what is expected of them.
                        (
                            1..,
                            "object"
                            | "array"
                            | "arrow_function"
                            | "function_expression"
                            | "call_expression"
                            | "ternary_expression"
                            | "parenthesized_expression"
                            | "new_expression"
                            | "generator_function"
                            | "as_expression"
                            | "await_expression",
                        ) => self.b.expr(Expr::Expected { call, index }),
                        _ => UNKNOWN,
                    };
                    args.push(self.expr_as(argument, expected));
                }
            }
            Some((template, _)) => {
                self.expr(template);
            }
            None => {}
        }
        self.b.code.calls[call as usize].args = args.into();
        self.b.expr(Expr::Call(call))
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

    fn object(&mut self, node: Node<'_>, expected: ExprId) -> ExprId {
        let mut all = Vec::new();
        for member in children(node) {
            match member.kind() {
                "pair" => {
                    let Some(key) = member.child_by_field_name("key") else {
                        continue;
                    };
                    if key.kind() != "property_identifier" {
                        self.exprs(key);
                        self.field(member, "value");
                        continue;
                    }
                    let inner = self.key(key, expected);
                    let value = member
                        .child_by_field_name("value")
                        .map_or(UNKNOWN, |value| self.expr_as(value, inner));
                    let name = self.b.facts.name(self.b.text(key));
                    all.push((name, value));
                }
                "shorthand_property_identifier" => {
                    let value = self.b.name_use(member, UseKind::Value, false);
                    self.key(member, expected);
                    let name = self.b.facts.name(self.b.text(member));
                    all.push((name, value));
                }
                "method_definition" => {
                    let name = member
                        .child_by_field_name("name")
                        .filter(|n| n.kind() == "property_identifier");
                    let inner = name.map_or(UNKNOWN, |name| self.key(name, expected));
                    let function = self.function_body(member, None, inner);
                    if let Some(name) = name {
                        let value = self.b.expr(Expr::Function(function));
                        let name = self.b.facts.name(self.b.text(name));
                        all.push((name, value));
                    }
                }
                _ => {
                    self.expr(member);
                }
            }
        }
        self.b.expr(Expr::Record(all.into()))
    }

    /// Mentions a key of an object where something is expected of it; returns what is expected of its value.
    fn key(&mut self, node: Node<'_>, expected: ExprId) -> ExprId {
        if expected == UNKNOWN {
            return UNKNOWN;
        }
        let text = self.b.text(node);
        let name = self.b.facts.name(text);
        self.b.add_use(
            text,
            node.start_byte() as u32,
            UseKind::Value,
            Link::Key { of: expected },
        );
        self.b.expr(Expr::Member {
            of: expected,
            name,
            ty: false,
        })
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

    /// Walks parameters in the current scope; returns what they are, and whether the last takes all that is left.
    /// Parameters of a constructor with a modifier are fields of `class`. Where nothing is written they are what
    /// `expected` is given.
    pub fn parameters(&mut self, node: Node<'_>, class: Option<DefId>, expected: ExprId) -> (Vec<ExprId>, bool) {
        let (mut all, mut rest) = (Vec::new(), false);
        let single = node.child_by_field_name("parameter");
        let list = node.child_by_field_name("parameters").map(children).unwrap_or_default();
        for parameter in single.into_iter().chain(list) {
            let pattern = parameter.child_by_field_name("pattern");
            if pattern.is_some_and(|pattern| pattern.kind() == "this") {
                if let Some(ty) = parameter.child_by_field_name("type") {
                    self.ty(ty);
                }
                continue;
            }
            let given = match expected {
                UNKNOWN => UNKNOWN,
                of => self.b.expr(Expr::Argument {
                    of,
                    index: all.len() as u32,
                }),
            };
            match parameter.kind() {
                "required_parameter" | "optional_parameter" => {
                    let ty = parameter.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty));
                    let default = parameter
                        .child_by_field_name("value")
                        .map_or(UNKNOWN, |value| self.expr_as(value, ty));
                    let value = match (ty, given) {
                        (UNKNOWN, UNKNOWN) => default,
                        (UNKNOWN, given) => given,
                        (ty, _) => ty,
                    };
                    all.push(value);
                    let Some(pattern) = pattern else { continue };
                    rest |= pattern.kind() == "rest_pattern";
                    match pattern.kind() {
                        "rest_pattern" if ty != UNKNOWN => {
                            for inner in children(pattern) {
                                self.pattern(inner, ty);
                            }
                        }
                        _ => self.pattern(pattern, value),
                    }
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
                _ => {
                    rest |= parameter.kind() == "rest_pattern";
                    all.push(given);
                    self.pattern(parameter, given);
                }
            }
        }
        (all, rest)
    }

    /// Walks parameters and body of a function in a scope of their own; what it takes and gives becomes that of `def`.
    pub fn function_body(&mut self, node: Node<'_>, def: Option<DefId>, expected: ExprId) -> u32 {
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
        let generics = self.type_parameters(node).into();
        let constructor = def.is_some_and(|d| self.b.facts.def_ref(d).is_some_and(|d| d.kind == Kind::Constructor));
        let (params, rest) = self.parameters(node, class.filter(|_| constructor), expected);
        let (ret, guard) = self.return_type(node);
        let expected_return = match (ret, expected) {
            (UNKNOWN, UNKNOWN) => UNKNOWN,
            (UNKNOWN, of) => self.b.expr(Expr::Result(of)),
            (ret, _) => ret,
        };
        let expected_return = std::mem::replace(&mut self.expected_return, expected_return);
        let mut values = if ret == UNKNOWN { Vec::new() } else { vec![ret] };
        if let Some(body) = node.child_by_field_name("body") {
            if body.kind() == "statement_block" {
                self.statements(body);
            } else {
                let value = self.expr_as(body, self.expected_return);
                self.returns.push(value);
            }
        }
        self.expected_return = expected_return;
        let found = std::mem::replace(&mut self.returns, returns);
        if values.is_empty() {
            values.extend(found.into_iter().filter(|&e| e != UNKNOWN).take(8));
        }
        self.functions -= 1;
        self.b.class = class;
        self.b.scope = scope;
        self.b.owner = owner;
        let function = self.b.function(Function {
            generics,
            params: params.into(),
            rest,
            results: values.clone().into(),
            guard,
        });
        if let Some(def) = def {
            self.b.item(def).values = values;
            self.b.item(def).function = Some(function);
        }
        function
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
