//! From a syntax tree to the facts of one Python file.

mod annotations;
mod exprs;

use std::collections::HashSet;

use tree_sitter::Node;
use zero_contracts::Error;

use super::PythonLanguage;
use crate::code::Code;
use crate::facts::{DefId, FileFacts, Kind, NONE, Span, UseKind};
use crate::language::Lang;
use crate::objects::build::{Builder, UNKNOWN, children};
use crate::objects::code::{Binding, Expr, ExprId, Import, Link};
use crate::parse::{Parsing, errors};

/// Computes the facts of a file.
///
/// # Errors
/// `cancelled` and `deadline` from the token.
pub fn facts(text: &str, parsing: &mut Parsing<'_>) -> Result<FileFacts, Error> {
    let tree = parsing.parse(&PythonLanguage, Lang::Python, text.as_bytes())?;
    let mut lower = Lower {
        b: Builder::new(Lang::Python, text),
        parsing,
        returns: Vec::new(),
        function: false,
        typed: HashSet::new(),
        outer_names: HashSet::new(),
        failed: None,
    };
    for error in errors(&tree) {
        lower.b.facts.error(error);
        lower.b.facts.opaque(error);
    }
    if tree.root_node().has_error() {
        // What recovery made of the rest may be mistaken, too.
        lower.b.facts.opaque(Span::from(tree.root_node()));
    }
    lower.block(tree.root_node());
    if let Some(error) = lower.failed {
        return Err(error);
    }
    let Builder { facts, code, .. } = lower.b;
    Ok(facts.finish(Code::Objects(Box::new(code))))
}

struct Lower<'t, 'p, 'c> {
    b: Builder<'t>,
    parsing: &'p mut Parsing<'c>,
    /// Values that the innermost function returns.
    returns: Vec<ExprId>,
    /// Inside a function: assigned names are local variables.
    function: bool,
    /// Definitions that say their type: functions, classes, annotated variables.
    typed: HashSet<DefId>,
    /// Names that the innermost function takes from the scopes around (`global`, `nonlocal`).
    outer_names: HashSet<String>,
    failed: Option<Error>,
}

impl Lower<'_, '_, '_> {
    fn block(&mut self, node: Node<'_>) {
        for child in children(node) {
            self.statement(child);
        }
    }

    fn statement(&mut self, node: Node<'_>) {
        if self.b.enter(node) {
            self.statement_inner(node);
            self.b.leave();
        }
    }

    fn statement_inner(&mut self, node: Node<'_>) {
        match node.kind() {
            "function_definition" => {
                self.function(node, &[]);
            }
            "class_definition" => self.class(node),
            "decorated_definition" => self.decorated(node),
            "import_statement" | "future_import_statement" | "import_from_statement" => self.import(node),
            "return_statement" => {
                let value = children(node).first().map_or(UNKNOWN, |value| self.expr(*value));
                self.returns.push(value);
            }
            "for_statement" => {
                let iterated = self.field(node, "right");
                let element = self.b.expr(Expr::Element(iterated));
                if let Some(left) = node.child_by_field_name("left") {
                    self.target(left, element);
                }
                for part in ["body", "alternative"] {
                    if let Some(part) = node.child_by_field_name(part) {
                        self.statement(part);
                    }
                }
            }
            "expression_statement" => self.block(node),
            "assignment" | "augmented_assignment" => {
                self.assignment(node);
            }
            "delete_statement" => {
                self.exprs(node);
            }
            "global_statement" | "nonlocal_statement" => {
                for name in children(node) {
                    let text = self.b.text(name).to_owned();
                    self.outer_names.insert(text);
                }
            }
            "block"
            | "module"
            | "if_statement"
            | "else_clause"
            | "elif_clause"
            | "try_statement"
            | "except_clause"
            | "except_group_clause"
            | "finally_clause"
            | "while_statement"
            | "with_statement"
            | "with_clause"
            | "with_item"
            | "match_statement"
            | "case_clause" => self.block(node),
            _ => {
                self.expr(node);
            }
        }
    }

    fn field(&mut self, node: Node<'_>, name: &str) -> ExprId {
        node.child_by_field_name(name).map_or(UNKNOWN, |child| self.expr(child))
    }

    fn decorated(&mut self, node: Node<'_>) {
        let mut marks = Vec::new();
        for child in children(node) {
            match child.kind() {
                "decorator" => {
                    marks.push(self.b.text(child).trim_start_matches('@').trim().to_owned());
                    self.exprs(child);
                }
                "function_definition" => self.function(child, &marks),
                "class_definition" => self.class(child),
                _ => {}
            }
        }
    }

    fn function(&mut self, node: Node<'_>, marks: &[String]) {
        let Some(name) = node.child_by_field_name("name") else {
            return;
        };
        let body = node.child_by_field_name("body");
        let in_class = self.b.class.is_some() && self.b.code.scopes[self.b.scope as usize].class;
        let is = |mark: &str| marks.iter().any(|m| m == mark || m.ends_with(&format!(".{mark}")));
        let kind = match (in_class, is("staticmethod") || is("classmethod")) {
            (true, true) => Kind::StaticMethod,
            (true, false) => Kind::Method,
            _ => Kind::Function,
        };
        let def = self.b.define(name, node, kind, body);
        let text = self.b.text(name);
        self.declare(name, def);
        self.complete(def, text, body);
        let property = is("property") || is("cached_property") || is("setter") || is("getter");
        self.b.item(def).property = property;
        let class = self.b.class;
        let outer = (
            std::mem::take(&mut self.returns),
            std::mem::replace(&mut self.function, true),
            std::mem::take(&mut self.outer_names),
        );
        let mut annotated = None;
        // Types of parameters and defaults belong to the scope around.
        let parameters = node.child_by_field_name("parameters").map(children).unwrap_or_default();
        let owner = std::mem::replace(&mut self.b.owner, def);
        let mut bound: Vec<(Node<'_>, ExprId)> = Vec::new();
        for (index, parameter) in parameters.into_iter().enumerate() {
            let own = index == 0 && in_class && !is("staticmethod");
            let (name, value) = self.parameter(parameter);
            let Some(name) = name else { continue };
            let value = match class.filter(|_| own) {
                Some(class) if is("classmethod") || text == "__new__" => self.b.expr(Expr::Class(class)),
                Some(class) => self.b.expr(Expr::This(class)),
                None => value,
            };
            bound.push((name, value));
        }
        if let Some(ret) = node.child_by_field_name("return_type") {
            annotated = Some(self.annotation(ret));
        }
        self.b.owner = owner;
        let scope_parent = self.b.scope;
        self.b.code.scopes.push(crate::objects::code::Scope {
            parent: scope_parent,
            class: false,
            names: Vec::new(),
        });
        self.b.scope = self.b.code.scopes.len() as u32 - 1;
        let owner = std::mem::replace(&mut self.b.owner, def);
        for (name, value) in bound {
            let text = self.b.text(name);
            self.b.bind(text, Binding::Value(value));
        }
        if let Some(body) = body {
            self.block(body);
        }
        self.b.owner = owner;
        self.b.scope = scope_parent;
        self.b.class = class;
        let returns = std::mem::replace(&mut self.returns, outer.0);
        self.function = outer.1;
        self.outer_names = outer.2;
        let values = match annotated {
            Some(value) if value != UNKNOWN => vec![value],
            _ => returns.into_iter().filter(|&e| e != UNKNOWN).take(8).collect(),
        };
        self.b.item(def).values = values;
    }

    /// Walks a parameter; returns its name and what it is.
    fn parameter<'n>(&mut self, node: Node<'n>) -> (Option<Node<'n>>, ExprId) {
        match node.kind() {
            "identifier" => (Some(node), UNKNOWN),
            "typed_parameter" => {
                let value = node
                    .child_by_field_name("type")
                    .map_or(UNKNOWN, |ty| self.annotation(ty));
                let inner = children(node).into_iter().find(|c| c.kind() != "type");
                match inner.map(|inner| (inner, inner.kind())) {
                    Some((inner, "identifier")) => (Some(inner), value),
                    Some((inner, _)) => (children(inner).first().copied(), UNKNOWN),
                    None => (None, UNKNOWN),
                }
            }
            "default_parameter" | "typed_default_parameter" => {
                let ty = node
                    .child_by_field_name("type")
                    .map_or(UNKNOWN, |ty| self.annotation(ty));
                let value = self.field(node, "value");
                (node.child_by_field_name("name"), if ty == UNKNOWN { value } else { ty })
            }
            "list_splat_pattern" | "dictionary_splat_pattern" => (children(node).first().copied(), UNKNOWN),
            _ => (None, UNKNOWN),
        }
    }

    fn class(&mut self, node: Node<'_>) {
        let Some(name) = node.child_by_field_name("name") else {
            return;
        };
        let body = node.child_by_field_name("body");
        let def = self.b.define(name, node, Kind::Class, body);
        let text = self.b.text(name);
        self.declare(name, def);
        self.complete(def, text, body);
        let owner = std::mem::replace(&mut self.b.owner, def);
        let mut bases = Vec::new();
        for base in node
            .child_by_field_name("superclasses")
            .map(children)
            .unwrap_or_default()
        {
            let value = self.expr(base);
            if base.kind() == "subscript" {
                // `Generic[T]`: the class is what stands before the brackets.
                if let Expr::Element(of) = self.b.code.exprs[value as usize] {
                    bases.push(of);
                }
            } else {
                bases.push(value);
            }
        }
        self.b.item(def).bases = bases;
        let class = self.b.class.replace(def);
        let function = std::mem::replace(&mut self.function, false);
        let scope = self.b.scope;
        self.b.code.scopes.push(crate::objects::code::Scope {
            parent: scope,
            class: true,
            names: Vec::new(),
        });
        self.b.scope = self.b.code.scopes.len() as u32 - 1;
        if let Some(body) = body {
            self.block(body);
        }
        self.b.scope = scope;
        self.b.class = class;
        self.function = function;
        self.b.owner = owner;
    }

    /// Binds a function or class. A name that its scope has declared before stands for the first declaration that says
    /// its type: overloads, the function they belong to, and copies for versions or platforms are one symbol. The others
    /// are definitions, too, and mention it.
    fn declare(&mut self, name: Node<'_>, def: DefId) {
        let text = self.b.text(name);
        self.typed.insert(def);
        let scope = self.b.scope;
        let known = match self.b.bound_here(text) {
            Some(Binding::Def(known)) => known,
            // What an import takes the place of has no other definition.
            Some(Binding::Import(_)) => {
                self.b.bind(text, Binding::Def(def));
                return;
            }
            _ => {
                self.b.bind(text, Binding::Def(def));
                return;
            }
        };
        let further = if self.typed.contains(&known) {
            def
        } else {
            self.b.rebind(text, Binding::Def(def));
            known
        };
        if let Some(entry) = self.b.facts.def_mut(further) {
            entry.further = true;
            let at = entry.at.start;
            self.b
                .add_use(text, at, UseKind::Value, Link::Name { scope, ty: false });
        }
    }

    fn complete(&mut self, def: DefId, name: &str, body: Option<Node<'_>>) {
        let doc = body
            .and_then(|body| body.named_child(0))
            .filter(|first| first.kind() == "expression_statement")
            .and_then(|first| first.named_child(0))
            .filter(|first| first.kind() == "string")
            .map(Span::from);
        if let Some(entry) = self.b.facts.def_mut(def) {
            entry.public = !name.starts_with('_');
            entry.test |= name.starts_with("test_") || (entry.kind == Kind::Class && name.starts_with("Test"));
            if let Some(doc) = doc {
                entry.doc = doc;
            }
        }
    }

    fn import(&mut self, node: Node<'_>) {
        let place = Span::from(node);
        let module = node.child_by_field_name("module_name");
        let module_text = match (node.kind(), module) {
            ("future_import_statement", _) => "__future__".to_owned(),
            (_, Some(module)) => self.b.text(module).split_whitespace().collect::<String>(),
            _ => String::new(),
        };
        let add = |s: &mut Self, module: &str, name: u32, star: bool| {
            let module = s.b.facts.name(module);
            s.b.code.imports.push(Import {
                module,
                name,
                star,
                at: place.start,
                end: place.end,
            });
            s.b.code.imports.len() as u32 - 1
        };
        if children(node).iter().any(|child| child.kind() == "wildcard_import") {
            add(self, &module_text, NONE, true);
            return;
        }
        let mut cursor = node.walk();
        let names: Vec<Node<'_>> = node.children_by_field_name("name", &mut cursor).collect();
        for name in names {
            let (path, alias) = if name.kind() == "aliased_import" {
                (name.child_by_field_name("name"), name.child_by_field_name("alias"))
            } else {
                (Some(name), None)
            };
            let Some(path) = path else { continue };
            let text = self.b.text(path).to_owned();
            if module.is_some() || node.kind() == "future_import_statement" {
                let id = self.b.facts.name(&text);
                let import = add(self, &module_text, id, false);
                self.b
                    .add_use(&text, path.start_byte() as u32, UseKind::Import, Link::Import(import));
                let bound = alias.map_or(text.as_str(), |alias| self.b.text(alias)).to_owned();
                self.b.bind(&bound, Binding::Import(import));
            } else if let Some(alias) = alias {
                let import = add(self, &text, NONE, false);
                let bound = self.b.text(alias);
                self.b.bind(bound, Binding::Import(import));
            } else {
                // `import a.b` binds `a`; the rest is reached through it.
                let first = text.split('.').next().unwrap_or_default().to_owned();
                let import = add(self, &first, NONE, false);
                if text != first {
                    add(self, &text, NONE, false);
                }
                self.b.bind(&first, Binding::Import(import));
            }
        }
    }

    fn assignment(&mut self, node: Node<'_>) -> ExprId {
        let ty = node.child_by_field_name("type").map(|ty| self.annotation(ty));
        let value = node.child_by_field_name("right").map_or(UNKNOWN, |right| {
            if right.kind() == "assignment" {
                self.assignment(right)
            } else {
                self.expr(right)
            }
        });
        let what = ty.filter(|&ty| ty != UNKNOWN).unwrap_or(value);
        if let Some(left) = node.child_by_field_name("left") {
            if node.kind() == "augmented_assignment" {
                self.expr(left);
            } else {
                self.target(left, what);
            }
            if ty.is_some()
                && left.kind() == "identifier"
                && let Some(Binding::Def(def)) = self.b.bound_here(self.b.text(left))
            {
                self.typed.insert(def);
            }
        }
        what
    }

    /// Binds what is assigned to.
    fn target(&mut self, node: Node<'_>, value: ExprId) {
        match node.kind() {
            "identifier" => {
                let text = self.b.text(node);
                if self.outer_names.contains(text) {
                    self.b.name_use(node, UseKind::Value, false);
                    return;
                }
                if self.function {
                    self.b.bind(text, Binding::Value(value));
                    return;
                }
                let in_class = self.b.code.scopes[self.b.scope as usize].class;
                if let Some(Binding::Def(def)) = self.b.bound_here(text) {
                    if self
                        .b
                        .facts
                        .def_ref(def)
                        .is_some_and(|d| !d.kind.is_callable() && !d.kind.is_type())
                    {
                        self.b.item(def).values.push(value);
                    }
                    self.b.name_use(node, UseKind::Value, false);
                    return;
                }
                let kind = if in_class { Kind::Field } else { Kind::Variable };
                let def = self.b.define(node, node, kind, None);
                self.b.item(def).values.push(value);
                self.b.bind(text, Binding::Def(def));
                if let Some(entry) = self.b.facts.def_mut(def) {
                    entry.public = !text.starts_with('_');
                }
            }
            "attribute" => {
                let object = node.child_by_field_name("object");
                let name = node.child_by_field_name("attribute");
                let (Some(object), Some(name)) = (object, name) else {
                    return;
                };
                let of = self.expr(object);
                let is_self = object.kind() == "identifier" && self.is_this(of);
                match self.b.class.filter(|_| is_self && self.function) {
                    Some(class) => self.field_of_self(class, name, value),
                    None => {
                        self.b.member_use(of, name, UseKind::Value);
                    }
                }
            }
            "pattern_list" | "tuple_pattern" | "list_pattern" | "tuple" | "list" => {
                for child in children(node) {
                    self.target(child, UNKNOWN);
                }
            }
            "list_splat_pattern" | "parenthesized_expression" => {
                for child in children(node) {
                    self.target(child, value);
                }
            }
            _ => {
                self.expr(node);
            }
        }
    }

    /// Tells whether a value is the `self` of the method around.
    fn is_this(&self, value: ExprId) -> bool {
        let Expr::Name { name, .. } = self.b.code.exprs[value as usize] else {
            return false;
        };
        self.b.code.scopes.get(self.b.scope as usize).is_some_and(|scope| {
            scope.names.iter().any(|(n, binding)| {
                *n == name
                    && matches!(binding, Binding::Value(v) if matches!(self.b.code.exprs[*v as usize], Expr::This(_)))
            })
        })
    }

    /// Defines a field by its first assignment in a class; later ones are uses.
    fn field_of_self(&mut self, class: DefId, name: Node<'_>, value: ExprId) {
        let text = self.b.text(name);
        let id = self.b.facts.name(text);
        let known = (class..self.b.facts.def_count() as DefId).find(|&def| {
            self.b
                .facts
                .def_ref(def)
                .is_some_and(|d| d.container == class && d.name == id)
        });
        if let Some(def) = known {
            if value != UNKNOWN {
                self.b.item(def).values.push(value);
            }
            let this = self.b.expr(Expr::This(class));
            self.b.member_use(this, name, UseKind::Value);
            return;
        }
        let owner = std::mem::replace(&mut self.b.owner, class);
        let def = self.b.define(name, name, Kind::Field, None);
        self.b.owner = owner;
        self.b.item(def).values.push(value);
        if let Some(entry) = self.b.facts.def_mut(def) {
            entry.public = !text.starts_with('_');
        }
    }

    fn open_scope(&mut self) -> u32 {
        let scope = self.b.scope;
        self.b.code.scopes.push(crate::objects::code::Scope {
            parent: scope,
            class: false,
            names: Vec::new(),
        });
        self.b.scope = self.b.code.scopes.len() as u32 - 1;
        scope
    }
}
