//! From a syntax tree to the facts of one Go file.

use tree_sitter::Node;
use zero_contracts::Error;

use super::GoLanguage;
use crate::declared::build::{Builder, UNKNOWN, children, count, fields, written};
use crate::declared::code::{Expr, ExprId, Want};
use crate::facts::{DefId, FileFacts, Kind, NONE, Span, UseKind};
use crate::language::Lang;
use crate::parse::Parsing;

/// Computes the facts of a file.
///
/// # Errors
/// `cancelled` and `deadline` from the token.
pub fn facts(text: &str, parsing: &mut Parsing<'_>) -> Result<FileFacts, Error> {
    let tree = parsing.parse(&GoLanguage, Lang::Go, text.as_bytes())?;
    let mut lower = Lower {
        b: Builder::new(Lang::Go, text, &tree),
    };
    for child in children(tree.root_node()) {
        lower.node(child);
    }
    Ok(lower.b.finish())
}

struct Lower<'t> {
    b: Builder<'t>,
}

impl Lower<'_> {
    /// Walks a declaration, statement or expression; returns what it is as a value.
    fn node(&mut self, node: Node<'_>) -> ExprId {
        if !self.b.enter(node) {
            return UNKNOWN;
        }
        let value = self.inner(node);
        self.b.leave();
        value
    }

    fn all(&mut self, node: Node<'_>) {
        for child in children(node) {
            self.node(child);
        }
    }

    fn field(&mut self, node: Node<'_>, name: &str) -> ExprId {
        node.child_by_field_name(name).map_or(UNKNOWN, |child| self.node(child))
    }

    fn inner(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            "package_clause" => {
                for name in children(node) {
                    let id = self.b.facts.name(self.b.text(name));
                    self.b.code.package.push(id);
                }
            }
            "import_declaration" | "import_spec_list" => self.all(node),
            "import_spec" => self.import(node),
            "type_spec" | "type_alias" => self.type_spec(node),
            "const_spec" => self.variables(node, Kind::Constant),
            "var_spec" => self.variables(node, Kind::Variable),
            "function_declaration" => self.function(node, Kind::Function, self.b.owner),
            "method_declaration" => self.method(node),
            "func_literal" => {
                let scope = self.b.open_scope(NONE);
                self.parameters(node);
                if let Some(body) = node.child_by_field_name("body") {
                    self.all(body);
                }
                self.b.scope = scope;
            }
            "block"
            | "if_statement"
            | "expression_switch_statement"
            | "select_statement"
            | "communication_case"
            | "expression_case"
            | "default_case" => {
                let scope = self.b.open_scope(NONE);
                self.all(node);
                self.b.scope = scope;
            }
            "for_statement" => self.loop_statement(node),
            "type_switch_statement" => self.type_switch(node),
            "short_var_declaration" => self.short(node),
            "receive_statement" => {
                let value = self.field(node, "right");
                let value = self.b.expr(Expr::Element(value));
                self.targets(node, &[value]);
            }
            "labeled_statement" | "break_statement" | "continue_statement" | "goto_statement" => {
                for child in children(node).into_iter().filter(|c| c.kind() != "label_name") {
                    self.node(child);
                }
            }
            "identifier" => return self.b.name_use(node, UseKind::Value, Want::Value),
            "type_identifier"
            | "qualified_type"
            | "generic_type"
            | "pointer_type"
            | "slice_type"
            | "array_type"
            | "map_type"
            | "channel_type"
            | "function_type"
            | "struct_type"
            | "interface_type"
            | "parenthesized_type"
            | "implicit_length_array_type" => return self.ty(node),
            "selector_expression" => return self.selector(node, UseKind::Value, Want::Value),
            "call_expression" => return self.call(node),
            "composite_literal" => return self.composite(node),
            "type_conversion_expression" => {
                let ty = self.field(node, "type");
                self.field(node, "operand");
                return self.b.instance(ty);
            }
            "type_assertion_expression" => {
                self.field(node, "operand");
                let ty = self.field(node, "type");
                return self.b.instance(ty);
            }
            "index_expression" => {
                let of = self.field(node, "operand");
                self.field(node, "index");
                return self.b.expr(Expr::Element(of));
            }
            "type_instantiation_expression" => {
                let of = self.field(node, "type");
                self.all(node);
                return of;
            }
            "slice_expression" => {
                let of = self.field(node, "operand");
                for part in ["start", "end", "capacity"] {
                    self.field(node, part);
                }
                return of;
            }
            "unary_expression" => {
                let of = self.field(node, "operand");
                let received = self.b.text(node).starts_with("<-");
                return if received { self.b.expr(Expr::Element(of)) } else { of };
            }
            "parenthesized_expression" => {
                return children(node).first().map_or(UNKNOWN, |&inner| self.node(inner));
            }
            _ => self.all(node),
        }
        UNKNOWN
    }

    fn import(&mut self, node: Node<'_>) {
        let Some(path) = node.child_by_field_name("path") else {
            return;
        };
        let what = self.b.text(path).trim_matches(['"', '`']).to_owned();
        let last = what.rsplit('/').next().unwrap_or_default();
        // `gopkg.in/yaml.v3` and `x/v2` do not end with the package's name.
        let is_version = last.strip_prefix('v').is_some_and(|v| v.parse::<u32>().is_ok());
        let last = if is_version {
            what.rsplit('/').nth(1).unwrap_or(last)
        } else {
            last
        };
        let plain = last.split('.').next().unwrap_or(last);
        let place = Span::from(node);
        match node.child_by_field_name("name") {
            Some(name) if name.kind() == "dot" => self.b.import(&what, None, true, place),
            Some(name) if name.kind() == "blank_identifier" => self.b.import(&what, None, false, place),
            Some(name) => {
                let name = self.b.text(name);
                self.b.import(&what, Some(name), false, place)
            }
            None => self.b.import(&what, Some(plain), false, place),
        };
    }

    /// Defines a name with everything a Go definition has.
    fn define(&mut self, name: Node<'_>, full: Node<'_>, kind: Kind, body: Option<Node<'_>>) -> DefId {
        let def = self.b.define(name, full, kind, body);
        let public = self.b.text(name).chars().next().is_some_and(char::is_uppercase);
        self.b.public(def, public);
        if let Some(outer) = full
            .parent()
            .filter(|p| p.kind().ends_with("_declaration") && p.named_child_count() == 1)
            && let Some(entry) = self.b.facts.def_mut(def)
            && entry.doc.is_empty()
        {
            // The comment above `type X struct` stands above the whole declaration.
            let mut above = outer.prev_sibling().filter(|c| c.kind() == "comment");
            let mut below = outer.start_position().row;
            while let Some(comment) = above.filter(|c| c.end_position().row + 1 == below) {
                let end = if entry.doc.is_empty() {
                    comment.end_byte() as u32
                } else {
                    entry.doc.end
                };
                entry.doc = Span {
                    start: comment.start_byte() as u32,
                    end,
                };
                below = comment.start_position().row;
                above = comment.prev_sibling().filter(|c| c.kind() == "comment");
            }
        }
        def
    }

    fn type_spec(&mut self, node: Node<'_>) {
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

    fn type_parameters(&mut self, node: Node<'_>) {
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

    fn variables(&mut self, node: Node<'_>, kind: Kind) {
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

    fn method(&mut self, node: Node<'_>) {
        let receiver = node.child_by_field_name("receiver").map(children).unwrap_or_default();
        let mut ty = receiver
            .first()
            .and_then(|receiver| receiver.child_by_field_name("type"));
        while let Some(inner) =
            ty.filter(|ty| matches!(ty.kind(), "pointer_type" | "generic_type" | "parenthesized_type"))
        {
            ty = inner.child_by_field_name("type").or_else(|| inner.named_child(0));
        }
        let Some(ty) = ty.filter(|ty| ty.kind() == "type_identifier") else {
            return self.function(node, Kind::Function, NONE);
        };
        let holder = self.b.define(ty, node, Kind::Impl, None);
        let owner = std::mem::replace(&mut self.b.owner, holder);
        self.function(node, Kind::Method, holder);
        self.b.owner = owner;
    }

    /// Walks a function, method or method of an interface.
    fn function(&mut self, node: Node<'_>, kind: Kind, holder: DefId) {
        let Some(name) = node.child_by_field_name("name") else {
            return;
        };
        let body = node.child_by_field_name("body");
        let def = self.define(name, node, kind, body);
        let text = self.b.text(name);
        let receiver = node.child_by_field_name("receiver");
        let parameters = node.child_by_field_name("parameters");
        let tests = ["Test", "Benchmark", "Fuzz", "Example"]
            .iter()
            .any(|t| text.starts_with(t));
        if tests && kind == Kind::Function && parameters.is_some_and(|p| self.b.text(p).contains("testing.")) {
            self.b.test(def);
        }
        let owner = std::mem::replace(&mut self.b.owner, def);
        let scope = self.b.open_scope(def);
        if let Some(receiver) = receiver {
            for parameter in children(receiver) {
                let generic = parameter
                    .child_by_field_name("type")
                    .map(|ty| {
                        if ty.kind() == "pointer_type" {
                            ty.named_child(0).unwrap_or(ty)
                        } else {
                            ty
                        }
                    })
                    .filter(|ty| ty.kind() == "generic_type");
                // `func (s *Set[T])` declares T.
                let arguments = generic.and_then(|ty| ty.child_by_field_name("type_arguments"));
                for argument in arguments.map(children).unwrap_or_default() {
                    self.b.type_parameter(argument, UNKNOWN);
                }
                self.field(parameter, "type");
                let value = self.b.expr(Expr::This(holder));
                for name in fields(parameter, "name") {
                    let (text, from) = (self.b.text(name), name.start_byte());
                    self.b.local(text, from, value);
                }
            }
        }
        self.type_parameters(node);
        let (types, variadic) = self.parameters(node);
        self.b.parameters(def, &types, 0, variadic);
        // `f(g())` passes all results of g.
        self.b.item(def).least = types.len().min(1) as u8;
        if let Some(result) = node.child_by_field_name("result") {
            let value = self.results(result);
            self.b.item(def).value = value;
        }
        if let Some(body) = body {
            self.all(body);
        }
        self.b.scope = scope;
        self.b.owner = owner;
    }

    /// Walks the parameters of a function; returns their types and whether the last takes any number.
    fn parameters(&mut self, node: Node<'_>) -> (Vec<String>, bool) {
        let (mut types, mut variadic) = (Vec::new(), false);
        let parameters = node.child_by_field_name("parameters").map(children);
        for parameter in parameters.unwrap_or_default() {
            let ty = self.field(parameter, "type");
            let mut value = self.b.instance(ty);
            if parameter.kind() == "variadic_parameter_declaration" {
                variadic = true;
                value = self.b.expr(Expr::List(ty));
            }
            let text = parameter.child_by_field_name("type").map_or("", |ty| self.b.text(ty));
            let names = fields(parameter, "name");
            for _ in 0..names.len().max(1) {
                types.push(written(text));
            }
            for name in names {
                let (text, from) = (self.b.text(name), name.start_byte());
                self.b.local(text, from, value);
            }
        }
        (types, variadic)
    }

    fn results(&mut self, node: Node<'_>) -> ExprId {
        if node.kind() != "parameter_list" {
            let ty = self.ty(node);
            return self.b.instance(ty);
        }
        let mut all = Vec::new();
        for part in children(node) {
            let ty = self.field(part, "type");
            let value = self.b.instance(ty);
            let names = fields(part, "name");
            for _ in 0..names.len().max(1) {
                all.push(value);
            }
            for name in names {
                let (text, from) = (self.b.text(name), name.start_byte());
                self.b.local(text, from, value);
            }
        }
        match all[..] {
            [one] => one,
            _ => self.b.expr(Expr::Tuple(all.into())),
        }
    }

    fn ty(&mut self, node: Node<'_>) -> ExprId {
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

    fn selector(&mut self, node: Node<'_>, kind: UseKind, want: Want) -> ExprId {
        let of = self.field(node, "operand");
        match node.child_by_field_name("field") {
            Some(field) => self.b.member_use(of, field, kind, want),
            None => UNKNOWN,
        }
    }

    fn call(&mut self, node: Node<'_>) -> ExprId {
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

    fn composite(&mut self, node: Node<'_>) -> ExprId {
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

    fn short(&mut self, node: Node<'_>) {
        let values = node.child_by_field_name("right").map(children).unwrap_or_default();
        let values: Vec<ExprId> = values.into_iter().map(|value| self.node(value)).collect();
        self.targets(node, &values);
    }

    /// Declares the names on the left of `:=`, or walks what is assigned to.
    fn targets(&mut self, node: Node<'_>, values: &[ExprId]) {
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

    fn loop_statement(&mut self, node: Node<'_>) {
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

    fn type_switch(&mut self, node: Node<'_>) {
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
