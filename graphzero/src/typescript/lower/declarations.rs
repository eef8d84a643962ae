//! Declarations, imports and exports.

use tree_sitter::Node;

use super::Lower;
use crate::facts::{DefId, Kind, NONE, Span};
use crate::objects::build::{UNKNOWN, children};
use crate::objects::code::{Binding, Export, Exported, Expr, Import, Link};

impl Lower<'_> {
    /// Walks a declaration; returns false if the node is none.
    pub fn declaration(&mut self, node: Node<'_>) -> bool {
        match node.kind() {
            "import_statement" => self.import(node),
            "export_statement" => self.export(node),
            "function_declaration" | "generator_function_declaration" | "function_signature" => {
                let Some(name) = node.child_by_field_name("name") else {
                    return true;
                };
                let def = self
                    .b
                    .define(name, node, Kind::Function, node.child_by_field_name("body"));
                self.declare(name, def, node);
                if node.kind() == "function_signature" {
                    let owner = std::mem::replace(&mut self.b.owner, def);
                    let function = self.signature(node);
                    self.b.owner = owner;
                    self.b.item(def).function = Some(function);
                } else {
                    self.function_body(node, Some(def), UNKNOWN);
                }
            }
            "class_declaration" | "abstract_class_declaration" => {
                let Some(name) = node.child_by_field_name("name") else {
                    return true;
                };
                let def = self.b.define(name, node, Kind::Class, node.child_by_field_name("body"));
                self.declare(name, def, node);
                self.class(node, Some(def));
            }
            "interface_declaration" => {
                let Some(name) = node.child_by_field_name("name") else {
                    return true;
                };
                let body = node.child_by_field_name("body");
                let def = self.b.define(name, node, Kind::Interface, body);
                self.declare(name, def, node);
                let owner = std::mem::replace(&mut self.b.owner, def);
                let scope = self.open_scope();
                let this = self.this.replace(def);
                let generics = self.type_parameters(node);
                self.b.item(def).generics = generics;
                let mut bases = Vec::new();
                for clause in children(node) {
                    if clause.kind() == "extends_type_clause" {
                        for base in children(clause) {
                            bases.push(self.ty(base));
                        }
                    }
                }
                self.b.item(def).bases = bases;
                if let Some(body) = body {
                    let (shape, _) = self.type_body(body);
                    let shape = self.b.shape(shape);
                    self.b.item(def).shape = Some(shape);
                }
                self.this = this;
                self.b.scope = scope;
                self.b.owner = owner;
            }
            "type_alias_declaration" => {
                let Some(name) = node.child_by_field_name("name") else {
                    return true;
                };
                let def = self.b.define(name, node, Kind::TypeAlias, None);
                self.declare(name, def, node);
                let owner = std::mem::replace(&mut self.b.owner, def);
                let scope = self.open_scope();
                let generics = self.type_parameters(node);
                self.b.item(def).generics = generics;
                let value = node
                    .child_by_field_name("value")
                    .map_or(UNKNOWN, |value| self.ty(value));
                self.b.item(def).values.push(value);
                self.b.scope = scope;
                self.b.owner = owner;
            }
            "enum_declaration" => self.enumeration(node),
            "internal_module" | "module" => self.namespace(node),
            "ambient_declaration" => self.statements(node),
            "lexical_declaration" | "variable_declaration" => {
                for declarator in children(node) {
                    self.variable(declarator, node);
                }
            }
            _ => return false,
        }
        true
    }

    fn declare(&mut self, name: Node<'_>, def: DefId, node: Node<'_>) {
        let text = self.b.text(name);
        self.b.bind(text, Binding::Def(def));
        self.complete(def, node);
    }

    /// Completes what all definitions have.
    fn complete(&mut self, def: DefId, node: Node<'_>) {
        let outer = node.parent().filter(|parent| parent.kind() == "export_statement");
        let first = outer.unwrap_or(node);
        let doc = first
            .prev_sibling()
            .filter(|before| before.kind() == "comment" && self.b.text(*before).starts_with("/**"))
            .map(Span::from);
        if let Some(entry) = self.b.facts.def_mut(def) {
            entry.public |= outer.is_some();
            if let Some(doc) = doc {
                entry.doc = doc;
            }
        }
    }

    /// Walks a class; without a definition it has no name.
    pub fn class(&mut self, node: Node<'_>, def: Option<DefId>) {
        let own = def.unwrap_or(self.b.owner);
        let owner = std::mem::replace(&mut self.b.owner, own);
        let scope = self.open_scope();
        let this = std::mem::replace(&mut self.this, def);
        let generics = self.type_parameters(node);
        if let Some(def) = def {
            self.b.item(def).generics = generics;
        }
        let mut bases = Vec::new();
        for child in children(node) {
            match child.kind() {
                "class_heritage" => {
                    for clause in children(child) {
                        match clause.kind() {
                            "extends_clause" => {
                                let of = self.field(clause, "value");
                                let args = clause.child_by_field_name("type_arguments").map(children);
                                let args: Vec<_> = args.unwrap_or_default().into_iter().map(|a| self.ty(a)).collect();
                                bases.push(if args.is_empty() {
                                    of
                                } else {
                                    self.b.expr(Expr::Apply { of, args: args.into() })
                                });
                            }
                            "implements_clause" => {
                                for base in children(clause) {
                                    bases.push(self.ty(base));
                                }
                            }
                            _ => bases.push(self.expr(clause)),
                        }
                    }
                }
                "decorator" => {
                    self.expr(child);
                }
                _ => {}
            }
        }
        if let Some(def) = def {
            self.b.item(def).bases = bases;
        }
        let class = std::mem::replace(&mut self.b.class, def);
        let functions = std::mem::take(&mut self.functions);
        for member in node.child_by_field_name("body").map(children).unwrap_or_default() {
            self.class_member(member, def);
        }
        self.functions = functions;
        self.this = this;
        self.b.class = class;
        self.b.scope = scope;
        self.b.owner = owner;
    }

    fn class_member(&mut self, member: Node<'_>, class: Option<DefId>) {
        let name = member
            .child_by_field_name("name")
            .or_else(|| member.child_by_field_name("property"));
        let plain = name.filter(|n| matches!(n.kind(), "property_identifier" | "private_property_identifier"));
        let is_static =
            children(member).iter().any(|c| c.kind() == "static") || self.b.text(member).starts_with("static ");
        match member.kind() {
            "method_definition" | "method_signature" | "abstract_method_signature" => {
                let Some(name) = plain.filter(|_| class.is_some()) else {
                    self.function_body(member, None, UNKNOWN);
                    return;
                };
                let kind = match self.b.text(name) {
                    "constructor" => Kind::Constructor,
                    _ if is_static => Kind::StaticMethod,
                    _ => Kind::Method,
                };
                let def = self.b.define(name, member, kind, member.child_by_field_name("body"));
                self.complete(def, member);
                let head = self.b.text(member);
                let accessor = head
                    .split_whitespace()
                    .take(3)
                    .any(|word| matches!(word, "get" | "set"));
                self.b.item(def).property = accessor && kind == Kind::Method;
                if member.kind() == "method_definition" {
                    self.function_body(member, Some(def), UNKNOWN);
                } else {
                    let owner = std::mem::replace(&mut self.b.owner, def);
                    let function = self.signature(member);
                    self.b.owner = owner;
                    self.b.item(def).values = self.b.code.functions[function as usize].results.to_vec();
                    self.b.item(def).function = Some(function);
                }
            }
            "public_field_definition" | "field_definition" => {
                let Some(name) = plain.filter(|_| class.is_some()) else {
                    self.field(member, "value");
                    return;
                };
                let def = self.b.define(name, member, Kind::Field, None);
                self.complete(def, member);
                let owner = std::mem::replace(&mut self.b.owner, def);
                let ty = member
                    .child_by_field_name("type")
                    .map_or(UNKNOWN, |ty| self.written(ty));
                let value = member
                    .child_by_field_name("value")
                    .map_or(UNKNOWN, |value| self.expr_as(value, ty));
                self.b.owner = owner;
                self.b.item(def).values.push(if ty == UNKNOWN { value } else { ty });
            }
            "index_signature" => {
                self.ty(member);
            }
            _ => {
                self.statement(member);
            }
        }
    }

    fn enumeration(&mut self, node: Node<'_>) {
        let Some(name) = node.child_by_field_name("name") else {
            return;
        };
        let body = node.child_by_field_name("body");
        let def = self.b.define(name, node, Kind::Enum, body);
        self.declare(name, def, node);
        let owner = std::mem::replace(&mut self.b.owner, def);
        for member in body.map(children).unwrap_or_default() {
            let name = if member.kind() == "enum_assignment" {
                member.child_by_field_name("name")
            } else {
                Some(member)
            };
            if let Some(name) = name.filter(|name| name.kind() == "property_identifier") {
                self.b.define(name, member, Kind::EnumMember, None);
            }
            self.field(member, "value");
        }
        self.b.owner = owner;
    }

    fn namespace(&mut self, node: Node<'_>) {
        let (Some(name), body) = (node.child_by_field_name("name"), node.child_by_field_name("body")) else {
            return;
        };
        if name.kind() != "identifier" {
            if let Some(body) = body {
                self.statements(body);
            }
            return;
        }
        let def = self.b.define(name, node, Kind::Module, body);
        self.declare(name, def, node);
        let owner = std::mem::replace(&mut self.b.owner, def);
        let scope = self.open_scope();
        if let Some(body) = body {
            self.statements(body);
        }
        self.b.scope = scope;
        self.b.owner = owner;
    }

    fn variable(&mut self, node: Node<'_>, statement: Node<'_>) {
        let Some(name) = node.child_by_field_name("name") else {
            return;
        };
        let value = node.child_by_field_name("value");
        let function = value.filter(|v| {
            matches!(
                v.kind(),
                "arrow_function" | "function_expression" | "generator_function"
            )
        });
        if name.kind() == "identifier" && (self.functions == 0 || function.is_some()) {
            let local = self.functions > 0;
            let kind = if function.is_some() && !local {
                Kind::Function
            } else {
                Kind::Variable
            };
            if !local {
                let def = self
                    .b
                    .define(name, node, kind, function.and_then(|f| f.child_by_field_name("body")));
                self.declare(name, def, statement);
                let owner = std::mem::replace(&mut self.b.owner, def);
                let ty = node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.written(ty));
                match function {
                    Some(function) => {
                        self.function_body(function, Some(def), ty);
                    }
                    None => {
                        let value = value.map_or(UNKNOWN, |value| self.expr_as(value, ty));
                        self.b.item(def).values.push(if ty == UNKNOWN { value } else { ty });
                    }
                }
                self.b.owner = owner;
                return;
            }
        }
        let ty = node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.written(ty));
        let value = value.map_or(UNKNOWN, |value| self.expr_as(value, ty));
        self.pattern(name, if ty == UNKNOWN { value } else { ty });
    }

    fn module_text(&self, node: Node<'_>) -> Option<String> {
        let source = node.child_by_field_name("source")?;
        Some(
            self.b
                .text(source)
                .trim_matches(|c| matches!(c, '"' | '\'' | '`'))
                .to_owned(),
        )
    }

    fn add_import(&mut self, place: Node<'_>, module: &str, name: u32, star: bool) -> u32 {
        let (span, module) = (Span::from(place), self.b.facts.name(module));
        self.b.code.imports.push(Import {
            module,
            name,
            star,
            at: span.start,
            end: span.end,
        });
        self.b.code.imports.len() as u32 - 1
    }

    fn import(&mut self, node: Node<'_>) {
        let Some(module) = self.module_text(node) else { return };
        let mut any = false;
        for clause in children(node) {
            if clause.kind() != "import_clause" {
                continue;
            }
            for part in children(clause) {
                any = true;
                match part.kind() {
                    "identifier" => {
                        let name = self.id("default");
                        let import = self.add_import(node, &module, name, false);
                        self.mention(part, Link::Import(import));
                        let text = self.b.text(part);
                        self.b.bind(text, Binding::Import(import));
                    }
                    "namespace_import" => {
                        let import = self.add_import(node, &module, NONE, false);
                        for name in children(part) {
                            let text = self.b.text(name);
                            self.b.bind(text, Binding::Import(import));
                        }
                    }
                    "named_imports" => {
                        for specifier in children(part) {
                            let Some(name) = specifier.child_by_field_name("name") else {
                                continue;
                            };
                            let text = self.b.text(name);
                            let id = self.id(text);
                            let import = self.add_import(node, &module, id, false);
                            self.mention(name, Link::Import(import));
                            let bound = specifier.child_by_field_name("alias").unwrap_or(name);
                            let bound = self.b.text(bound);
                            self.b.bind(bound, Binding::Import(import));
                        }
                    }
                    _ => {}
                }
            }
        }
        if !any {
            self.add_import(node, &module, NONE, false);
        }
    }

    fn export(&mut self, node: Node<'_>) {
        let module = self.module_text(node);
        let default = {
            let mut cursor = node.walk();
            node.children(&mut cursor).any(|child| child.kind() == "default")
        };
        if let Some(declaration) = node.child_by_field_name("declaration") {
            self.statement(declaration);
            if default && let Some(name) = declaration.child_by_field_name("name") {
                let (default, text) = (self.id("default"), self.b.text(name));
                let local = self.id(text);
                self.b.code.exports.push(Export {
                    name: default,
                    of: Exported::Local(local),
                });
            }
            return;
        }
        if let Some(value) = node.child_by_field_name("value") {
            let expression = self.expr(value);
            let default = self.id("default");
            let of = if value.kind() == "identifier" {
                let text = self.b.text(value);
                Exported::Local(self.id(text))
            } else {
                Exported::Value(expression)
            };
            self.b.code.exports.push(Export { name: default, of });
            return;
        }
        let mut star = true;
        for part in children(node) {
            match part.kind() {
                "export_clause" => {
                    star = false;
                    for specifier in children(part) {
                        let Some(name) = specifier.child_by_field_name("name") else {
                            continue;
                        };
                        let text = self.b.text(name);
                        let id = self.id(text);
                        let given = specifier.child_by_field_name("alias").unwrap_or(name);
                        let given = self.b.text(given);
                        let given = self.id(given);
                        let of = match &module {
                            Some(module) => {
                                let import = self.add_import(node, module, id, false);
                                self.mention(name, Link::Import(import));
                                Exported::Import(import)
                            }
                            None => {
                                let scope = self.b.scope;
                                self.mention(name, Link::Name { scope, ty: false });
                                Exported::Local(id)
                            }
                        };
                        self.b.code.exports.push(Export { name: given, of });
                    }
                }
                "namespace_export" => {
                    star = false;
                    if let (Some(module), Some(name)) = (&module, children(part).first()) {
                        let import = self.add_import(node, module, NONE, false);
                        let text = self.b.text(*name);
                        let name = self.id(text);
                        self.b.code.exports.push(Export {
                            name,
                            of: Exported::Import(import),
                        });
                    }
                }
                "string" => {}
                _ => {
                    star = false;
                    self.statement(part);
                }
            }
        }
        if let Some(module) = module.filter(|_| star) {
            let import = self.add_import(node, &module, NONE, false);
            self.b.code.exports.push(Export {
                name: NONE,
                of: Exported::Import(import),
            });
        }
    }
}
