//! From a syntax tree to the facts of one Java file: declarations.

use tree_sitter::Node;
use zero_contracts::Error;

use super::JavaLanguage;
use crate::declared::build::{Builder, UNKNOWN, children, fields, written};
use crate::declared::code::{Expr, ExprId, Link, Want};
use crate::facts::{DefId, FileFacts, Kind, Span, UseKind};
use crate::language::Lang;
use crate::parse::Parsing;

/// Computes the facts of a file.
///
/// # Errors
/// `cancelled` and `deadline` from the token.
pub fn facts(text: &str, parsing: &mut Parsing<'_>) -> Result<FileFacts, Error> {
    let tree = parsing.parse(&JavaLanguage, Lang::Java, text.as_bytes())?;
    let mut lower = Lower {
        b: Builder::new(Lang::Java, text, &tree),
    };
    lower.all(tree.root_node());
    Ok(lower.b.finish())
}

pub(super) struct Lower<'t> {
    pub(super) b: Builder<'t>,
}

impl Lower<'_> {
    pub(super) fn all(&mut self, node: Node<'_>) {
        for child in children(node) {
            self.node(child);
        }
    }

    /// Walks a declaration, statement or expression; returns what it is as a value.
    pub(super) fn node(&mut self, node: Node<'_>) -> ExprId {
        if !self.b.enter(node) {
            return UNKNOWN;
        }
        let value = match node.kind() {
            "package_declaration" => self.package(node),
            "import_declaration" => self.import(node),
            "class_declaration" | "record_declaration" => self.class(node, Kind::Class),
            "interface_declaration" | "annotation_type_declaration" => self.class(node, Kind::Interface),
            "enum_declaration" => self.class(node, Kind::Enum),
            "enum_constant" => self.constant(node),
            "field_declaration" | "constant_declaration" => self.field_declaration(node),
            "method_declaration" | "annotation_type_element_declaration" => self.method(node),
            "constructor_declaration" | "compact_constructor_declaration" => self.method(node),
            _ => self.statement(node),
        };
        self.b.leave();
        value
    }

    pub(super) fn field(&mut self, node: Node<'_>, name: &str) -> ExprId {
        node.child_by_field_name(name).map_or(UNKNOWN, |child| self.node(child))
    }

    fn package(&mut self, node: Node<'_>) -> ExprId {
        let path = children(node)
            .into_iter()
            .find(|child| matches!(child.kind(), "identifier" | "scoped_identifier"));
        let text = path.map_or("", |path| self.b.text(path));
        for part in text.split('.') {
            let id = self.b.facts.name(part.trim());
            self.b.code.package.push(id);
        }
        UNKNOWN
    }

    fn import(&mut self, node: Node<'_>) -> ExprId {
        let parts = children(node);
        let Some(path) = parts
            .iter()
            .find(|child| matches!(child.kind(), "identifier" | "scoped_identifier"))
        else {
            return UNKNOWN;
        };
        let text = written(self.b.text(*path));
        let place = Span::from(node);
        if parts.iter().any(|child| child.kind() == "asterisk") {
            self.b.import(&format!("{text}.*"), None, true, place);
            return UNKNOWN;
        }
        let last = path.child_by_field_name("name").unwrap_or(*path);
        let name = self.b.text(last);
        let import = self.b.import(&text, Some(name), false, place);
        self.b
            .add_use(name, last.start_byte() as u32, UseKind::Import, Link::Import(import));
        UNKNOWN
    }

    /// Walks annotations and tells which modifiers there are.
    fn modifiers(&mut self, node: Node<'_>) -> String {
        let modifiers = children(node).into_iter().find(|child| child.kind() == "modifiers");
        match modifiers {
            Some(modifiers) => {
                self.all(modifiers);
                self.b.text(modifiers).to_owned()
            }
            None => String::new(),
        }
    }

    fn complete(&mut self, def: DefId, modifiers: &str) {
        let holder = self
            .b
            .class
            .and_then(|class| self.b.facts.def_ref(class).map(|c| c.kind));
        let has = |word: &str| modifiers.split(|c: char| !c.is_alphanumeric()).any(|w| w == word);
        let public = has("public") || has("protected") || (holder == Some(Kind::Interface) && !has("private"));
        self.b.public(def, public);
        if ["Test", "ParameterizedTest", "RepeatedTest", "TestFactory"]
            .iter()
            .any(|t| has(t))
        {
            self.b.test(def);
        }
    }

    fn class(&mut self, node: Node<'_>, kind: Kind) -> ExprId {
        let Some(name) = node.child_by_field_name("name") else {
            return UNKNOWN;
        };
        let body = node.child_by_field_name("body");
        let def = self.b.define(name, node, kind, body);
        let outer = self.b.owner;
        self.b.owner = def;
        let modifiers = self.modifiers(node);
        self.complete(def, &modifiers);
        let scope = self.b.open_scope(def);
        let class = self.b.class.replace(def);
        self.type_parameters(node);
        for part in ["superclass", "interfaces"] {
            if let Some(part) = node.child_by_field_name(part) {
                self.bases(part, def);
            }
        }
        for part in children(node).into_iter().filter(|c| c.kind() == "extends_interfaces") {
            self.bases(part, def);
        }
        if let Some(parameters) = node.child_by_field_name("parameters") {
            self.components(parameters, def);
        }
        if let Some(body) = body {
            self.all(body);
        }
        self.b.class = class;
        self.b.scope = scope;
        self.b.owner = outer;
        UNKNOWN
    }

    fn bases(&mut self, node: Node<'_>, def: DefId) {
        for child in children(node) {
            if child.kind() == "type_list" {
                self.bases(child, def);
            } else {
                let base = self.ty(child);
                self.b.item(def).bases.push(base);
            }
        }
    }

    /// Defines the components of a record: fields that can be called, too. They are also what its constructor takes.
    fn components(&mut self, node: Node<'_>, class: DefId) {
        let mut types = Vec::new();
        for parameter in children(node) {
            let (Some(name), Some(ty)) = (
                parameter.child_by_field_name("name"),
                parameter.child_by_field_name("type"),
            ) else {
                continue;
            };
            types.push(written(self.b.text(ty)));
            let def = self.b.define(name, parameter, Kind::Field, None);
            self.b.public(def, true);
            let owner = std::mem::replace(&mut self.b.owner, def);
            let ty = self.ty(ty);
            self.b.owner = owner;
            let value = self.b.instance(ty);
            self.b.item(def).value = value;
        }
        self.b.parameters(class, &types, 0, false);
    }

    pub(super) fn type_parameters(&mut self, node: Node<'_>) {
        let parameters = node.child_by_field_name("type_parameters").map(children);
        for parameter in parameters.unwrap_or_default() {
            let (mut name, mut bound) = (None, UNKNOWN);
            for part in children(parameter) {
                match part.kind() {
                    "type_identifier" | "identifier" => name = Some(part),
                    "type_bound" => {
                        let bounds: Vec<ExprId> = children(part).into_iter().map(|ty| self.ty(ty)).collect();
                        bound = bounds.first().copied().unwrap_or(UNKNOWN);
                    }
                    _ => {}
                }
            }
            if let Some(name) = name {
                self.b.type_parameter(name, bound);
            }
        }
    }

    fn constant(&mut self, node: Node<'_>) -> ExprId {
        let Some(name) = node.child_by_field_name("name") else {
            return UNKNOWN;
        };
        let def = self.b.define(name, node, Kind::EnumMember, None);
        self.b.public(def, true);
        let class = self.b.class;
        let value = class.map_or(UNKNOWN, |class| self.b.expr(Expr::This(class)));
        self.b.item(def).value = value;
        let owner = std::mem::replace(&mut self.b.owner, def);
        self.modifiers(node);
        if let Some(arguments) = node.child_by_field_name("arguments") {
            self.all(arguments);
        }
        if let Some(body) = node.child_by_field_name("body") {
            self.all(body);
        }
        self.b.owner = owner;
        UNKNOWN
    }

    fn field_declaration(&mut self, node: Node<'_>) -> ExprId {
        let declarators = fields(node, "declarator");
        let first = self.b.facts.def_count() as DefId;
        let constant = node.kind() == "constant_declaration" || {
            let text = children(node)
                .into_iter()
                .find(|c| c.kind() == "modifiers")
                .map_or("", |m| self.b.text(m));
            text.contains("static") && text.contains("final")
        };
        let kind = if constant { Kind::Constant } else { Kind::Field };
        for declarator in &declarators {
            if let Some(name) = declarator.child_by_field_name("name") {
                self.b.define(name, node, kind, None);
            }
        }
        let owner = std::mem::replace(&mut self.b.owner, first);
        let modifiers = self.modifiers(node);
        let ty = node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty));
        for (at, declarator) in declarators.iter().enumerate() {
            let def = first + at as DefId;
            self.b.owner = def;
            self.complete(def, &modifiers);
            let value = self.declared(*declarator, ty);
            self.b.item(def).value = value;
            self.field(*declarator, "value");
        }
        self.b.owner = owner;
        UNKNOWN
    }

    /// Returns what a declarator of a type holds: an array if it has brackets of its own.
    pub(super) fn declared(&mut self, declarator: Node<'_>, ty: ExprId) -> ExprId {
        if declarator.child_by_field_name("dimensions").is_some() {
            self.b.expr(Expr::List(ty))
        } else {
            self.b.instance(ty)
        }
    }

    fn method(&mut self, node: Node<'_>) -> ExprId {
        let Some(name) = node.child_by_field_name("name") else {
            return UNKNOWN;
        };
        let body = node.child_by_field_name("body");
        let holder = self
            .b
            .class
            .and_then(|class| self.b.facts.def_ref(class).map(|c| c.kind));
        let is_static = children(node)
            .into_iter()
            .find(|c| c.kind() == "modifiers")
            .is_some_and(|m| self.b.text(m).split_whitespace().any(|word| word == "static"));
        let kind = match (node.kind(), holder) {
            ("constructor_declaration" | "compact_constructor_declaration", _) => Kind::Constructor,
            (_, _) if is_static => Kind::StaticMethod,
            (_, Some(Kind::Interface)) => Kind::TraitMethod,
            _ => Kind::Method,
        };
        let def = self.b.define(name, node, kind, body);
        let owner = std::mem::replace(&mut self.b.owner, def);
        let modifiers = self.modifiers(node);
        self.complete(def, &modifiers);
        let scope = self.b.open_scope(def);
        self.type_parameters(node);
        if let Some(ty) = node.child_by_field_name("type") {
            let ty = self.ty(ty);
            let value = self.b.instance(ty);
            self.b.item(def).value = value;
        }
        let (mut types, mut variadic) = (Vec::new(), false);
        for parameter in node.child_by_field_name("parameters").map(children).unwrap_or_default() {
            variadic |= parameter.kind() == "spread_parameter";
            if parameter.kind() != "receiver_parameter" {
                types.push(self.parameter(parameter));
            }
        }
        if node.kind() == "compact_constructor_declaration" {
            // It takes what the record's components say.
            if let Some(class) = self.b.class {
                let of = self.b.item(class).clone();
                let item = self.b.item(def);
                (item.signature, item.least, item.most) = (of.signature, of.least, of.most);
            }
        } else {
            self.b.parameters(def, &types, usize::from(variadic), variadic);
        }
        for part in children(node).into_iter().filter(|c| c.kind() == "throws") {
            for ty in children(part) {
                self.ty(ty);
            }
        }
        self.field(node, "value");
        if let Some(body) = body {
            self.all(body);
        }
        self.b.scope = scope;
        self.b.owner = owner;
        UNKNOWN
    }

    /// Declares a parameter; returns its type as it is written.
    pub(super) fn parameter(&mut self, node: Node<'_>) -> String {
        self.modifiers(node);
        if node.kind() == "spread_parameter" {
            let (mut ty, mut text, mut name) = (UNKNOWN, String::new(), None);
            for part in children(node) {
                match part.kind() {
                    "modifiers" => {}
                    "variable_declarator" => name = part.child_by_field_name("name"),
                    _ => {
                        text = written(self.b.text(part));
                        ty = self.ty(part);
                    }
                }
            }
            let value = self.b.expr(Expr::List(ty));
            if let Some(name) = name {
                let (text, from) = (self.b.text(name), name.start_byte());
                self.b.local(text, from, value);
            }
            return text + "...";
        }
        let written_type = node.child_by_field_name("type").map(|ty| written(self.b.text(ty)));
        let ty = node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty));
        let value = self.declared(node, ty);
        let name = node
            .child_by_field_name("name")
            .or_else(|| (node.kind() == "identifier").then_some(node));
        if let Some(name) = name {
            let (text, from) = (self.b.text(name), name.start_byte());
            self.b.local(text, from, value);
        }
        written_type.unwrap_or_default()
    }

    /// Walks a written type.
    pub(super) fn ty(&mut self, node: Node<'_>) -> ExprId {
        if !self.b.enter(node) {
            return UNKNOWN;
        }
        let ty = match node.kind() {
            "type_identifier" | "identifier" => match self.b.text(node) {
                // Not a type: the value tells.
                "var" => UNKNOWN,
                _ => self.b.name_use(node, UseKind::Type, Want::Type),
            },
            "scoped_type_identifier" | "scoped_identifier" => {
                let parts = children(node);
                match (parts.first(), parts.last()) {
                    (Some(of), Some(name)) if parts.len() > 1 => {
                        let of = self.ty(*of);
                        self.b.member_use(of, *name, UseKind::Type, Want::Type)
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
                        of = self.ty(part);
                    }
                }
                self.b.expr(Expr::Generic(of, arguments.into()))
            }
            "array_type" => {
                let element = node.child_by_field_name("element").map_or(UNKNOWN, |ty| self.ty(ty));
                self.b.expr(Expr::List(element))
            }
            "integral_type" | "floating_point_type" | "boolean_type" | "void_type" => self.b.expr(Expr::External),
            "annotated_type" | "wildcard" | "catch_type" | "type_list" => {
                let mut last = UNKNOWN;
                for part in children(node) {
                    if part.kind().ends_with("annotation") {
                        self.node(part);
                    } else {
                        last = self.ty(part);
                    }
                }
                last
            }
            _ => {
                self.all(node);
                UNKNOWN
            }
        };
        self.b.leave();
        ty
    }
}
