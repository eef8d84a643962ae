//! Macro invocations: their arguments parsed as what they look like.
//!
//! Three readings are tried on the text between the delimiters: a list of expressions, a match (`matches!(value, pattern)`)
//! and a list of statements or items. The first without a syntax error is walked as code. What fits none is read token
//! by token: paths and calls are noted, and every word counts as opaque, because an expansion may define anything.

use tree_sitter::Tree;

use super::shape::{self, Reading, Shape};
use super::tokens;
use super::types::PathEnd;
use super::{Lower, UNKNOWN};
use crate::facts::{Kind, UseKind};
use crate::language::Lang;
use crate::rust::RustLanguage;
use crate::rust::code::{Base, Expr, ExprId, Link, Ns, Prim, TypeRef};
use crate::rust::nodes::{F, K, symbol};
use crate::rust::syntax::{Node, Syntax};

/// Longest arguments that are parsed a second time, in bytes.
const MAX_ARGUMENTS: usize = 256 << 10;

impl Lower<'_, '_, '_> {
    /// Walks a macro invocation and returns its value.
    pub fn macro_call(&mut self, node: Node<'_>, _item: bool) -> ExprId {
        let Some(head) = node.field(F::Macro) else {
            return UNKNOWN;
        };
        self.path(head, Ns::Macro, UseKind::Macro);
        let text = head.text();
        let name = text.rsplit("::").next().unwrap_or_default();
        let tree = node.children().find(|child| child.kind() == K::TokenTree);
        let Some(tree) = tree else { return UNKNOWN };
        let named = self.named_by_macro(name, node, tree);
        let args = match named[..] {
            // What a call gives to the one function it makes lies in that function.
            [function]
                if self
                    .facts
                    .def_ref(function)
                    .is_some_and(|def| def.kind == Kind::Function) =>
            {
                self.inside(function, |s| s.macro_arguments(name, tree))
            }
            _ => self.macro_arguments(name, tree),
        };
        self.macro_value(name, args)
    }

    /// Defines the items whose names stand among the arguments of a macro of this file.
    fn named_by_macro(&mut self, name: &str, node: Node<'_>, tree: Node<'_>) -> Vec<u32> {
        let start = tree.start_byte() + 1;
        let Some(content) = inside(tree).filter(|_| self.macros.contains_key(name)) else {
            return Vec::new();
        };
        let found = super::rules::defined(&self.macros, name, &super::rules::tokens(content));
        let full = self.span(node);
        let mut defined = Vec::new();
        for named in found {
            let at = self.shifted(start + named.at, start + named.at + named.name.len());
            if at.end > full.end || !self.macro_names.insert(at.start) {
                continue;
            }
            let def = self.define_at(&named.name, at, full, named.kind, true);
            if let Some(entry) = self.facts.def_mut(def) {
                entry.test |= named.test;
                entry.head = at.end;
            }
            defined.push(def);
        }
        defined
    }

    pub fn macro_arguments(&mut self, name: &str, tree: Node<'_>) -> Vec<ExprId> {
        let start = tree.start_byte() + 1;
        let Some(content) = inside(tree).filter(|content| !content.trim().is_empty()) else {
            return Vec::new();
        };
        if content.len() > MAX_ARGUMENTS || self.depth > 200 {
            self.tokens(tree);
            return Vec::new();
        }
        let matching = matches!(
            name,
            "matches" | "assert_matches" | "debug_assert_matches" | "assert_match"
        );
        let readings: &[Reading] = match name {
            _ if matching => &[Reading::Match, Reading::Arguments],
            "vec" => &[Reading::Array],
            "thread_local" | "lazy_static" | "cfg_if" | "bitflags" => &[Reading::Statements],
            "macro_rules" => &[],
            _ => &[Reading::Arguments, Reading::Statements, Reading::Array],
        };
        let mut inside: Vec<Node<'_>> = tree.all_children().filter(|n| !n.is_comment()).collect();
        inside.pop();
        inside.drain(..inside.len().min(1));
        let array = readings.first() == Some(&Reading::Array);
        if (array || readings.first() == Some(&Reading::Arguments))
            && self.macro_names.is_empty()
            && let Some(list) = tokens::read(&inside, !array, |name| self.macros.contains_key(name))
        {
            // Most calls of `println!` and `assert!` need no second parse.
            let values = self.token_list(&list, !array);
            return if array {
                vec![self.push_expr(Expr::Array(values.into()))]
            } else {
                values
            };
        }
        let shape = Shape::of(&inside);
        let fits = |reading: Reading| {
            // An array without a semicolon is a list of expressions like any other, which was tried before it.
            shape.fits(reading) && (reading != Reading::Array || name == "vec" || shape.repeats())
        };
        for reading in readings.iter().copied().filter(|&reading| fits(reading)) {
            if let Some((source, prefix, parsed)) = self.reparse(content, reading, false) {
                return self.walk_reading(reading, &source, start as i64 - prefix as i64, &parsed);
            }
        }
        if shape::words_of_items(tree) {
            // Lines with marks of the macro's own (`@section private`) stand among items; items with other marks among them
            // are still items.
            for text in unmarked(content).into_iter().chain([content.to_owned()]) {
                if let Some((source, prefix, parsed)) = self.reparse(&text, Reading::Statements, true) {
                    let span = self.span(tree);
                    self.facts.opaque(span);
                    return self.walk_reading(Reading::Statements, &source, start as i64 - prefix as i64, &parsed);
                }
            }
        }
        self.tokens(tree);
        Vec::new()
    }

    /// Parses arguments in one reading; returns the text, how much of it stands before the arguments, and the tree.
    fn reparse(&mut self, content: &str, reading: Reading, tolerant: bool) -> Option<(String, usize, Tree)> {
        let (source, before) = written(content, reading)?;
        let (language, bytes) = (&RustLanguage, source.as_bytes());
        let parsed = if tolerant {
            let tree = self.parsing.parse(language, Lang::Rust, bytes);
            tree.map(|tree| Some(tree).filter(|tree| !tree.root_node().has_error() || mostly_items(tree)))
        } else {
            self.parsing.parse_clean(language, Lang::Rust, bytes)
        };
        match parsed {
            Ok(tree) => tree.map(|tree| (source, before, tree)),
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }

    fn walk_reading(&mut self, reading: Reading, source: &str, shift: i64, tree: &Tree) -> Vec<ExprId> {
        let syntax = Syntax::new(source, tree);
        let root = syntax.root();
        self.shift += shift;
        let mut values = Vec::new();
        if let Reading::Statements = reading {
            let function = root.named_children().next();
            let body = function.and_then(|function| function.field(F::Body));
            self.bound(|s| body.map(|body| s.list(body)));
        } else {
            let inner = root.first_child();
            let inner = inner.map(|n| {
                if n.kind() == K::ExpressionStatement {
                    n.named_children().next().unwrap_or(n)
                } else {
                    n
                }
            });
            match (reading, inner) {
                (Reading::Arguments, Some(call)) => {
                    for argument in call.children_in(F::Arguments) {
                        if argument.kind() != K::AttributeItem {
                            values.push(self.macro_argument(argument));
                        }
                    }
                }
                (Reading::Match, Some(expression)) => {
                    self.expr(expression);
                }
                (Reading::Array, Some(array)) => values.push(self.expr(array)),
                _ => {}
            }
        }
        self.shift -= shift;
        values
    }

    /// Walks one argument. `name = value` names a parameter of the macro, not a variable.
    pub fn macro_argument(&mut self, node: Node<'_>) -> ExprId {
        if node.kind() == K::AssignmentExpression
            && let (Some(left), Some(right)) = (node.field(F::Left), node.field(F::Right))
            && left.kind() == K::Identifier
        {
            return self.expr(right);
        }
        let name = match node.kind() {
            K::Identifier => {
                let text = node.text();
                self.local(text.trim_start_matches("r#")).is_none()
                    && !self.macro_names.contains(&self.span(node).start)
            }
            kind => kind == K::ScopedIdentifier,
        };
        if name && let PathEnd::Use(id) = self.path(node, Ns::Argument, UseKind::Value) {
            return self.push_expr(Expr::Path(id));
        }
        self.expr(node)
    }

    pub fn macro_value(&mut self, name: &str, args: Vec<ExprId>) -> ExprId {
        match name {
            "vec" => match args.first().map(|&array| &self.code.exprs[array as usize]) {
                Some(Expr::Array(elements)) => {
                    let elements = elements.clone();
                    self.push_expr(Expr::Vec(elements))
                }
                _ => self.push_expr(Expr::Vec(Box::default())),
            },
            "dbg" => args.first().copied().unwrap_or(UNKNOWN),
            "matches" | "cfg" | "is_x86_feature_detected" => self.push_expr(Expr::Prim(Prim::Bool)),
            "line" | "column" => self.push_expr(Expr::Prim(Prim::U32)),
            "stringify" | "concat" | "env" | "include_str" | "file" | "module_path" => {
                let text = self.push_expr(Expr::Prim(Prim::Str));
                self.push_expr(Expr::Ref(text))
            }
            "format" => {
                let ty = self.push_type(TypeRef::Prim(Prim::Str));
                let text = self.push_expr(Expr::Typed(ty));
                // A `String` reads like the `str` it dereferences to.
                self.push_expr(Expr::Ref(text))
            }
            _ => UNKNOWN,
        }
    }

    /// Notes what can be told of tokens that are no code by themselves.
    fn tokens(&mut self, tree: Node<'_>) {
        let span = self.span(tree);
        self.facts.opaque(span);
        let mut leaves = Vec::new();
        let mut stack = vec![tree];
        while let Some(node) = stack.pop() {
            if node.is_leaf() {
                leaves.push(node);
            } else {
                let children: Vec<Node<'_>> = node.all_children().collect();
                stack.extend(children.into_iter().rev());
            }
        }
        let mut base: Option<Base> = None;
        for at in 0..leaves.len() {
            let node = leaves[at];
            let before = at.checked_sub(1).map(|i| leaves[i].text()).unwrap_or_default();
            let after = leaves.get(at + 1).map(|n| n.text()).unwrap_or_default();
            let joined = before == "::";
            let found = match node.kind() {
                K::Crate => Some(Base::Crate),
                K::SelfKeyword if after == "::" => Some(Base::Module(0)),
                K::Super => Some(Base::Module(1)),
                K::Identifier if self.macro_names.contains(&self.span(node).start) => None,
                K::Identifier => {
                    let text = node.text();
                    if before == "." {
                        if after == "(" {
                            let link = Link::Method {
                                recv: UNKNOWN,
                                scope: self.scope,
                            };
                            self.use_name(text, self.span(node).start, UseKind::Call, link);
                        } else {
                            let at = self.span(node).start;
                            self.use_name(text, at, UseKind::Value, Link::Field { recv: UNKNOWN });
                        }
                        None
                    } else if before == "$" || (!joined && after != "::" && self.local(text).is_some()) {
                        None
                    } else if text == "Self" {
                        Some(Base::SelfType)
                    } else {
                        let ns = if after == "!" {
                            Ns::Macro
                        } else if after == "::" {
                            Ns::Type
                        } else {
                            Ns::Argument
                        };
                        let use_kind = match after {
                            "(" => UseKind::Call,
                            "!" => UseKind::Macro,
                            _ => UseKind::Value,
                        };
                        let from = if joined {
                            base.unwrap_or(Base::Root)
                        } else {
                            Base::Lexical
                        };
                        Some(Base::Use(self.use_path(node, from, ns, use_kind)))
                    }
                }
                _ => None,
            };
            if found.is_some() || before != "::" && node.text() != "::" {
                base = found;
            }
        }
    }
}

/// Writes arguments as what one reading takes them for; returns the text, and how much of it stands before them.
pub fn written(content: &str, reading: Reading) -> Option<(String, usize)> {
    let (prefix, suffix) = match reading {
        // The grammar takes statements outside functions: the less stands around, the sooner it is parsed.
        Reading::Arguments => ("f(", ");"),
        Reading::Array => ("[", "];"),
        Reading::Match => ("match ", "=>{}};"),
        Reading::Statements => ("fn _(){", "\n}"),
    };
    let mut source = String::with_capacity(prefix.len() + content.len() + suffix.len());
    source.push_str(prefix);
    if let Reading::Match = reading {
        let comma = top_level_comma(content)?;
        let pattern = content[comma + 1..].trim_end();
        let pattern = pattern.strip_suffix(',').unwrap_or(pattern);
        source.push_str(&content[..comma]);
        // One byte for another: places stay what they are.
        source.push('{');
        source.push_str(pattern);
    } else {
        source.push_str(content);
    }
    source.push_str(suffix);
    Some((source, prefix.len()))
}

/// Returns what stands between the delimiters of a group.
fn inside(tree: Node<'_>) -> Option<&str> {
    let text = tree.text();
    text.get(1..text.len().saturating_sub(1))
}

/// Blanks the lines that begin with `@` and a name; returns nothing if there are none.
fn unmarked(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut found = false;
    for line in text.split_inclusive('\n') {
        let mark = line.trim_start().strip_prefix('@').and_then(|rest| rest.chars().next());
        if mark.is_some_and(|c| c.is_alphabetic() || c == '_') {
            found = true;
            plain.extend(line.bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }));
        } else {
            plain.push_str(line);
        }
    }
    found.then_some(plain)
}

/// Tells whether a list of statements holds items, and little that is wrong.
fn mostly_items(tree: &Tree) -> bool {
    let root = tree.root_node();
    let Some(body) = root
        .named_child(0)
        .and_then(|function| function.child_by_field_name("body"))
    else {
        return false;
    };
    let mut cursor = body.walk();
    let items = body.named_children(&mut cursor).any(|child| {
        matches!(
            symbol(child.kind_id()).kind,
            K::TraitItem | K::StructItem | K::EnumItem | K::ImplItem | K::FunctionItem | K::ModItem | K::UnionItem
        )
    });
    let wrong: u32 = crate::parse::errors(tree)
        .iter()
        .map(|span| span.end - span.start)
        .sum();
    items && (wrong as usize) * 4 < body.byte_range().len()
}

/// Returns the first comma outside brackets, strings and characters.
fn top_level_comma(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0i32, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => return Some(at),
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'\'' if bytes.get(at + 2) == Some(&b'\'') => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\\') => at += 3,
            _ => {}
        }
        at += 1;
    }
    None
}
