//! From a syntax tree to the facts of one Go file.

mod expressions;
mod functions;
mod statements;
mod types;

use tree_sitter::Node;
use zero_contracts::Error;

use super::GoLanguage;
use crate::declared::build::{Builder, UNKNOWN, children};
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
}
