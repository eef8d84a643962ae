//! Declarations of C and C++: namespaces, functions, variables, fields, aliases.

use tree_sitter::Node;

use super::declarator::Declarator;
use super::lower::Lower;
use crate::declared::build::{UNKNOWN, children, fields, written};
use crate::declared::code::{Expr, ExprId, MANY, Want};
use crate::facts::{DefId, Kind, NONE, Span, UseKind};

impl Lower<'_> {
    /// Walks a declaration; tells whether it was one.
    pub(super) fn declaration(&mut self, node: Node<'_>, kind: &str) -> bool {
        match kind {
            "namespace_definition" => self.namespace(node),
            "linkage_specification" => {
                self.field(node, "body");
            }
            "template_declaration" => self.template(node),
            "declaration" | "field_declaration" => self.variables(node),
            "function_definition" | "inline_method_definition" => self.function_definition(node),
            "type_definition" => self.type_definition(node),
            "alias_declaration" => self.alias(node),
            "namespace_alias_definition" => self.namespace_alias(node),
            "using_declaration" => self.using(node),
            "access_specifier" => {
                self.public = !self.b.text(node).starts_with("private");
            }
            "friend_declaration" => {
                for child in children(node) {
                    if child.kind().ends_with("identifier") {
                        self.ty(child);
                    } else {
                        self.node(child);
                    }
                }
            }
            "parameter_declaration" | "optional_parameter_declaration" | "variadic_parameter_declaration" => {
                self.parameter(node);
            }
            _ => return false,
        }
        true
    }

    fn namespace(&mut self, node: Node<'_>) {
        let (owner, scope, hidden) = (self.b.owner, self.b.scope, self.hidden);
        let names = match node.child_by_field_name("name") {
            Some(nested) if nested.kind() == "nested_namespace_specifier" => parts(nested),
            Some(name) => vec![name],
            None => {
                self.hidden = true;
                Vec::new()
            }
        };
        for name in names {
            let def = self.define(name, node, Kind::Module, node.child_by_field_name("body"));
            // A namespace has as many blocks as it likes.
            self.b.item(def).body = false;
            self.b.owner = def;
            self.b.open_scope(def);
        }
        self.field(node, "body");
        (self.b.owner, self.b.scope, self.hidden) = (owner, scope, hidden);
    }

    fn template(&mut self, node: Node<'_>) {
        let scope = self.b.open_scope(NONE);
        for parameter in node.child_by_field_name("parameters").map(children).unwrap_or_default() {
            let parts = children(parameter);
            let name = parts.first().filter(|part| part.kind() == "type_identifier");
            match (parameter.kind(), name) {
                (kind, Some(name)) if kind.contains("type_parameter") => {
                    self.b.type_parameter(*name, UNKNOWN);
                    self.field(parameter, "default_type");
                }
                _ => {
                    self.node(parameter);
                }
            }
        }
        let parameters = node.child_by_field_name("parameters");
        for child in children(node).into_iter().filter(|child| Some(*child) != parameters) {
            self.template = Some(Span::from(node));
            if matches!(child.kind(), "class_specifier" | "struct_specifier" | "union_specifier") {
                self.ty(child);
            } else {
                self.node(child);
            }
        }
        self.template = None;
        self.b.scope = scope;
    }

    /// Walks the type of a declaration. A type that it defines belongs to what is around.
    fn declared_type(&mut self, node: Node<'_>) -> ExprId {
        node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty))
    }

    fn has_word(&self, node: Node<'_>, word: &str) -> bool {
        children(node)
            .into_iter()
            .any(|child| child.kind().ends_with("_specifier") && child.child_count() < 2 && self.b.text(child) == word)
            || children(node)
                .into_iter()
                .any(|child| child.kind() == "type_qualifier" && self.b.text(child) == word)
    }

    fn variables(&mut self, node: Node<'_>) {
        let declarators = fields(node, "declarator");
        let template = self.template;
        if node
            .child_by_field_name("type")
            .is_some_and(|ty| ty.child_by_field_name("body").is_none())
        {
            self.template = None;
        }
        if declarators.is_empty() {
            let ty = node.child_by_field_name("type");
            if let Some(ty) =
                ty.filter(|ty| ty.kind().ends_with("_specifier") && ty.child_by_field_name("body").is_none())
                && matches!(ty.kind(), "class_specifier" | "struct_specifier" | "union_specifier")
                && let Some(name) = ty.child_by_field_name("name").filter(|n| n.kind() == "type_identifier")
                && !self.in_function()
            {
                return self.forward(ty, name, node);
            }
        }
        let ty = self.declared_type(node);
        self.template = template;
        let member =
            node.kind() == "field_declaration" || (self.b.class.is_some() && self.b.class == Some(self.b.owner));
        for declarator in declarators {
            let initialised = declarator.kind() == "init_declarator";
            let read = Declarator::read(declarator);
            let value = self.value_of(&read, ty);
            if read.parameters.is_some() && !self.in_function() {
                self.function(node, &read, value, None);
            } else if self.in_function() {
                self.local(declarator, &read, ty, value);
            } else {
                self.global(node, declarator, &read, value, member, initialised);
            }
            self.template = None;
        }
        if let Some(default) = node.child_by_field_name("default_value") {
            self.node(default);
        }
    }

    /// A type that is only declared: `struct node;`.
    fn forward(&mut self, ty: Node<'_>, name: Node<'_>, node: Node<'_>) {
        let kind = match ty.kind() {
            "class_specifier" => Kind::Class,
            "union_specifier" => Kind::Union,
            _ => Kind::Struct,
        };
        self.define(name, node, kind, None);
    }

    fn value_of(&mut self, read: &Declarator<'_>, ty: ExprId) -> ExprId {
        if let Some(trailing) = read.trailing {
            let ty = children(trailing).first().map_or(UNKNOWN, |&ty| self.ty(ty));
            return self.b.instance(ty);
        }
        if read.array {
            self.b.expr(Expr::List(ty))
        } else {
            self.b.instance(ty)
        }
    }

    fn inside(&mut self, read: &Declarator<'_>) {
        for part in &read.inside {
            let scope = self.b.open_scope(NONE);
            self.all(*part);
            if part.kind() == "identifier" {
                self.node(*part);
            }
            self.b.scope = scope;
        }
    }

    fn local(&mut self, declarator: Node<'_>, read: &Declarator<'_>, ty: ExprId, value: ExprId) {
        self.inside(read);
        let initial = declarator.child_by_field_name("value");
        let found = initial.map_or(UNKNOWN, |initial| self.initial(initial, value));
        if let Some(parameters) = read.parameters {
            // `Item v(other);` reads like a function.
            self.all(parameters);
        }
        if let Some(name) = read.name {
            let (text, from) = (self.b.text(name), name.start_byte());
            self.b.local(text, from, if ty == UNKNOWN { found } else { value });
        }
    }

    /// Walks an initial value of a known type.
    fn initial(&mut self, node: Node<'_>, of: ExprId) -> ExprId {
        if node.kind() == "initializer_list" {
            self.braces(node, of);
            return UNKNOWN;
        }
        self.node(node)
    }

    /// Walks the braces of an initial value: designators are members of its type.
    pub(super) fn braces(&mut self, node: Node<'_>, of: ExprId) {
        for child in children(node) {
            match child.kind() {
                "initializer_pair" => {
                    let mut at = of;
                    for designator in fields(child, "designator") {
                        for part in children(designator) {
                            if part.kind() == "field_identifier" {
                                at = self.b.member_use(at, part, UseKind::Value, Want::Value);
                            } else {
                                self.node(part);
                            }
                        }
                    }
                    match child.child_by_field_name("value") {
                        Some(value) if value.kind() == "initializer_list" => self.braces(value, at),
                        Some(value) => {
                            self.node(value);
                        }
                        None => {}
                    }
                }
                "initializer_list" => {
                    let inside = self.b.expr(Expr::Element(of));
                    self.braces(child, inside);
                }
                _ => {
                    self.node(child);
                }
            }
        }
    }

    fn global(
        &mut self,
        node: Node<'_>,
        declarator: Node<'_>,
        read: &Declarator<'_>,
        value: ExprId,
        member: bool,
        initialised: bool,
    ) {
        let Some(name) = read.name else { return };
        let constant = self.has_word(node, "const") || self.has_word(node, "constexpr");
        let kind = match (member && read.scopes.is_empty(), constant) {
            (true, _) => Kind::Field,
            (false, true) => Kind::Constant,
            (false, false) => Kind::StaticVariable,
        };
        let owner = self.b.owner;
        for scope in &read.scopes {
            self.holder(*scope, node);
        }
        let def = self.define(name, node, kind, None);
        let (is_static, is_extern) = (self.has_word(node, "static"), self.has_word(node, "extern"));
        let item = self.b.item(def);
        item.value = value;
        item.body = member || initialised || !is_extern;
        item.local |= !member && is_static;
        if is_static && !member {
            self.b.public(def, false);
        }
        self.b.owner = def;
        self.inside(read);
        if let Some(initial) = declarator.child_by_field_name("value") {
            self.initial(initial, value);
        }
        self.b.owner = owner;
    }

    fn function_definition(&mut self, node: Node<'_>) {
        let Some(declarator) = node.child_by_field_name("declarator") else {
            return self.all(node);
        };
        let read = Declarator::read(declarator);
        let template = self.template.take();
        let ty = self.declared_type(node);
        self.template = template;
        let value = self.value_of(&read, ty);
        if read.parameters.is_none() || read.name.is_none() {
            return self.all(node);
        }
        self.function(node, &read, value, Some(node));
    }

    /// Defines a function; with its body if it has one.
    fn function(&mut self, node: Node<'_>, read: &Declarator<'_>, value: ExprId, whole: Option<Node<'_>>) {
        let (Some(mut name), Some(parameters)) = (read.name, read.parameters) else {
            return;
        };
        let body = whole.and_then(|whole| {
            whole
                .child_by_field_name("body")
                .or_else(|| children(whole).into_iter().find(|c| c.kind() == "try_statement"))
        });
        // `= default` and `= delete` say all there is.
        let complete = whole.is_some();
        let owner = self.b.owner;
        let scope = self.b.scope;
        let mut test = false;
        let listed = children(parameters);
        if TESTS.contains(&self.b.text(name)) && listed.len() == 2 && body.is_some() {
            // TEST(Suite, Name): the macros of a test framework.
            name = listed[1];
            test = true;
        }
        let last_scope = read.scopes.last().map(|scope| {
            let name = scope.child_by_field_name("name").unwrap_or(*scope);
            self.b.text(name)
        });
        let holder_name = last_scope.or_else(|| {
            let class = self.b.class.filter(|&class| class == owner)?;
            let entry = self.b.facts.def_ref(class)?;
            Some(self.b.facts.slice(entry.at))
        });
        let text = self.b.text(name);
        let is_static = self.has_word(node, "static");
        let kind = match holder_name {
            Some(class) if class == text => Kind::Constructor,
            Some(_) if is_static => Kind::StaticMethod,
            Some(_) => Kind::Method,
            None => Kind::Function,
        };
        let template = self.template.take();
        for scope in &read.scopes {
            let holder = self.holder(*scope, node);
            self.b.open_scope(holder);
        }
        self.template = template;
        let def = self.define(name, node, kind, body);
        if test {
            self.b.test(def);
        }
        let class = self.b.class;
        if !read.scopes.is_empty() {
            self.b.class = Some(self.b.owner);
        }
        let local = is_static && holder_name.is_none();
        if local {
            self.b.public(def, false);
        }
        let item = self.b.item(def);
        item.value = value;
        item.body = complete;
        item.local |= local;
        self.b.owner = def;
        self.b.open_scope(def);
        if test {
            self.b.parameters(def, &[], 0, false);
        } else {
            self.parameters(def, parameters);
        }
        self.inside(read);
        if let Some(whole) = whole {
            for part in children(whole)
                .into_iter()
                .filter(|c| c.kind() == "field_initializer_list")
            {
                self.initialisers(part);
            }
            if let Some(body) = body {
                self.all(body);
            }
        }
        self.b.class = class;
        self.b.owner = owner;
        self.b.scope = scope;
    }

    fn parameters(&mut self, def: DefId, node: Node<'_>) {
        let listed = children(node);
        let (mut types, mut optional) = (Vec::new(), 0);
        for parameter in &listed {
            optional += usize::from(parameter.kind().starts_with("optional"));
            if parameter.kind() == "variadic_parameter" {
                continue;
            }
            let text = self.parameter(*parameter);
            types.push(text);
        }
        let alone = listed.len() == 1 && self.b.text(listed[0]) == "void";
        if alone {
            types.clear();
        }
        let dots = self.b.text(node).contains("...");
        self.b.parameters(def, &types, optional, dots);
        if !self.cpp && listed.is_empty() {
            // An empty list of C says nothing.
            self.b.item(def).most = MANY;
        }
    }

    /// Declares a parameter; returns its type as it is written.
    pub(super) fn parameter(&mut self, node: Node<'_>) -> String {
        let ty = self.declared_type(node);
        let default = node.child_by_field_name("default_value");
        if let Some(default) = default {
            self.node(default);
        }
        let end = default.map_or(node.end_byte(), |default| default.start_byte());
        let mut text = self.b.text.get(node.start_byte()..end).unwrap_or_default().to_owned();
        let Some(declarator) = node.child_by_field_name("declarator") else {
            return written(text.trim_end_matches(['=', ' ']));
        };
        let read = Declarator::read(declarator);
        self.inside(&read);
        if read.parameters.is_some() {
            let scope = self.b.open_scope(NONE);
            if let Some(parameters) = read.parameters {
                self.all(parameters);
            }
            self.b.scope = scope;
        }
        if let Some(name) = read.name {
            let value = self.value_of(&read, ty);
            let (local, from) = (self.b.text(name), name.start_byte());
            self.b.local(local, from, value);
            let at = name.start_byte().saturating_sub(node.start_byte());
            text.replace_range(at.min(text.len())..(at + local.len()).min(text.len()), "");
        }
        written(text.trim_end_matches(['=', ' ']))
    }

    fn initialisers(&mut self, node: Node<'_>) {
        for entry in children(node) {
            let parts = children(entry);
            let Some(&first) = parts.first() else { continue };
            let arguments = parts
                .get(1)
                .map(|arguments| children(*arguments).len())
                .unwrap_or_default();
            let want = Want::Call(crate::declared::build::count(arguments));
            match first.kind() {
                "field_identifier" | "type_identifier" => {
                    self.b.name_use(first, UseKind::Value, want);
                }
                "template_method" | "template_type" => {
                    if let Some(name) = first.child_by_field_name("name") {
                        self.b.name_use(name, UseKind::Value, want);
                    }
                    self.template_arguments(first);
                }
                "qualified_identifier" => {
                    self.qualified(first, None, UseKind::Value, want);
                }
                _ => {
                    self.node(first);
                }
            }
            for part in parts.into_iter().skip(1) {
                self.node(part);
            }
        }
    }

    fn type_definition(&mut self, node: Node<'_>) {
        let declarators = fields(node, "declarator");
        let written = node.child_by_field_name("type");
        let first = declarators
            .first()
            .copied()
            .filter(|first| first.kind() == "type_identifier");
        let nameless =
            written.filter(|ty| ty.child_by_field_name("body").is_some() && ty.child_by_field_name("name").is_none());
        if let (Some(ty), Some(name)) = (nameless, first) {
            match ty.kind() {
                "enum_specifier" => self.enumeration(ty, Some(name)),
                _ => self.composite(ty, Some(name)),
            };
            return;
        }
        let ty = self.declared_type(node);
        for declarator in declarators {
            let read = Declarator::read(declarator);
            let Some(name) = read.name else { continue };
            let def = self.define(name, node, Kind::TypeAlias, None);
            // A pointer to a function is no object of what the function returns.
            let value = match (read.function_pointer || read.parameters.is_some(), read.array) {
                (true, _) => UNKNOWN,
                (_, true) => self.b.expr(Expr::List(ty)),
                _ => ty,
            };
            self.b.item(def).value = value;
            let owner = std::mem::replace(&mut self.b.owner, def);
            self.inside(&read);
            if let Some(parameters) = read.parameters {
                let scope = self.b.open_scope(NONE);
                self.all(parameters);
                self.b.scope = scope;
            }
            self.b.owner = owner;
        }
    }

    fn alias(&mut self, node: Node<'_>) {
        let Some(name) = node.child_by_field_name("name") else {
            return;
        };
        let def = self.define(name, node, Kind::TypeAlias, None);
        let owner = std::mem::replace(&mut self.b.owner, def);
        let ty = self.declared_type(node);
        self.b.owner = owner;
        self.b.item(def).value = ty;
    }

    fn namespace_alias(&mut self, node: Node<'_>) {
        let Some(name) = node.child_by_field_name("name") else {
            return;
        };
        let mut of = UNKNOWN;
        for part in children(node).into_iter().filter(|part| *part != name) {
            of = match part.kind() {
                "nested_namespace_specifier" => parts(part).into_iter().fold(UNKNOWN, |of, part| {
                    if of == UNKNOWN {
                        self.ty(part)
                    } else {
                        self.b.member_use(of, part, UseKind::Type, Want::Type)
                    }
                }),
                _ => self.ty(part),
            };
        }
        let id = self.b.facts.name(self.b.text(name));
        self.b.code.scopes[self.b.scope as usize].brought.push((id, of));
    }

    fn using(&mut self, node: Node<'_>) {
        let whole = children(node).into_iter().next_back();
        let Some(whole) = whole else { return };
        let opens = self.b.text(node).split_whitespace().nth(1) == Some("namespace");
        let of = match whole.kind() {
            "qualified_identifier" => self.qualified(whole, None, UseKind::Import, Want::Type),
            _ => self.b.name_use(whole, UseKind::Import, Want::Type),
        };
        let scope = self.b.scope as usize;
        if opens {
            self.b.code.scopes[scope].opened.push(of);
        } else {
            let name = self.b.text(whole).rsplit("::").next().unwrap_or_default().trim();
            let id = self.b.facts.name(name);
            self.b.code.scopes[scope].brought.push((id, of));
        }
    }
}

/// Macros of test frameworks that stand where a function's head would.
const TESTS: &[&str] = &["TEST", "TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P"];

/// Returns the names of `a::b::c`, outermost first.
fn parts(node: Node<'_>) -> Vec<Node<'_>> {
    let mut found = Vec::new();
    for child in children(node) {
        if child.kind() == "nested_namespace_specifier" {
            found.extend(parts(child));
        } else {
            found.push(child);
        }
    }
    found
}
