//! From a syntax tree to the facts of one C or C++ file: the file as a whole, the preprocessor, the walk.

use tree_sitter::Node;
use zero_contracts::Error;

use super::CLanguage;
use crate::declared::build::{Builder, UNKNOWN, children};
use crate::declared::code::{ExprId, Link, Want};
use crate::facts::{FileFacts, Kind, Span, UseKind};
use crate::language::Lang;
use crate::parse::Parsing;

/// Computes the facts of a file.
///
/// # Errors
/// `cancelled` and `deadline` from the token.
pub fn facts(lang: Lang, text: &str, parsing: &mut Parsing<'_>) -> Result<FileFacts, Error> {
    let tree = parsing.parse(&CLanguage, lang, text.as_bytes())?;
    let mut lower = Lower {
        b: Builder::new(lang, text, &tree),
        cpp: lang == Lang::Cpp,
        public: true,
        hidden: false,
        conditions: 0,
        template: None,
    };
    lower.all(tree.root_node());
    Ok(lower.b.finish())
}

/// Tells whether a header can only be C++.
pub fn looks_like_cpp(text: &str) -> bool {
    let mut in_comment = false;
    text.lines().any(|line| {
        let line = line.trim_start();
        if in_comment {
            in_comment = !line.contains("*/");
            return false;
        }
        if line.starts_with("/*") {
            in_comment = !line.contains("*/");
            return false;
        }
        let starts = [
            "namespace ",
            "class ",
            "template <",
            "template<",
            "using ",
            "public:",
            "private:",
            "protected:",
        ];
        starts.iter().any(|start| line.starts_with(start))
            || (line.contains("std::") && !line.starts_with("//"))
            || (line.starts_with("#include <") && !line.contains(".h>") && line.ends_with('>') && !line.contains('.'))
    })
}

pub(super) struct Lower<'t> {
    pub(super) b: Builder<'t>,
    pub(super) cpp: bool,
    /// What is declared here is seen outside the class.
    pub(super) public: bool,
    /// Inside a namespace without a name.
    pub(super) hidden: bool,
    /// How many conditions of the preprocessor are around.
    pub(super) conditions: usize,
    /// The template around the next declaration: where it begins.
    pub(super) template: Option<Span>,
}

impl Lower<'_> {
    pub(super) fn all(&mut self, node: Node<'_>) {
        for child in children(node) {
            self.node(child);
        }
    }

    pub(super) fn field(&mut self, node: Node<'_>, name: &str) -> ExprId {
        node.child_by_field_name(name).map_or(UNKNOWN, |child| self.node(child))
    }

    /// Walks anything; returns what it is as a value.
    pub(super) fn node(&mut self, node: Node<'_>) -> ExprId {
        if !self.b.enter(node) {
            return UNKNOWN;
        }
        let value = self.inner(node);
        self.b.leave();
        value
    }

    fn inner(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            "preproc_include" => self.include(node),
            "preproc_def" | "preproc_function_def" => self.define_macro(node),
            "preproc_if" | "preproc_ifdef" | "preproc_elif" | "preproc_elifdef" | "preproc_else" => {
                self.condition(node)
            }
            "preproc_call" | "preproc_directive" | "comment" => UNKNOWN,
            kind if self.declaration(node, kind) => UNKNOWN,
            _ => self.expression(node),
        }
    }

    fn include(&mut self, node: Node<'_>) -> ExprId {
        if let Some(path) = node.child_by_field_name("path") {
            let what = self.b.text(path).to_owned();
            self.b.import(&what, None, false, Span::from(path));
        }
        UNKNOWN
    }

    fn define_macro(&mut self, node: Node<'_>) -> ExprId {
        let Some(name) = node.child_by_field_name("name") else {
            return UNKNOWN;
        };
        let value = node.child_by_field_name("value");
        if is_guard(node) {
            return UNKNOWN;
        }
        let owner = std::mem::replace(&mut self.b.owner, crate::facts::NONE);
        let def = self.b.define(name, node, Kind::Macro, value);
        self.b.public(def, true);
        self.conditional(def);
        let parameters: Vec<&str> = node
            .child_by_field_name("parameters")
            .map(children)
            .unwrap_or_default()
            .into_iter()
            .map(|parameter| self.b.text(parameter))
            .collect();
        if let Some(value) = value {
            self.b.owner = def;
            self.macro_body(value, &parameters);
        }
        self.b.owner = owner;
        UNKNOWN
    }

    /// Notes the names in the text of a macro: they mean what they would mean at the outermost level.
    fn macro_body(&mut self, node: Node<'_>, parameters: &[&str]) {
        let (text, start) = (self.b.text(node), node.start_byte());
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                quote @ (b'"' | b'\'') => {
                    at += 1;
                    while at < bytes.len() && bytes[at] != quote {
                        at += if bytes[at] == b'\\' { 2 } else { 1 };
                    }
                    at += 1;
                }
                b if b.is_ascii_alphanumeric() || b == b'_' => {
                    let end = bytes[at..]
                        .iter()
                        .position(|b| !(b.is_ascii_alphanumeric() || *b == b'_'))
                        .map_or(bytes.len(), |length| at + length);
                    let word = &text[at..end];
                    let called = text[end..].trim_start().starts_with('(');
                    // After `.` and `->` stands a member of something whose type the macro does not tell.
                    let before = text[..at].trim_end();
                    let member = before.ends_with('.') || before.ends_with("->");
                    if !word.starts_with(|c: char| c.is_ascii_digit())
                        && !parameters.contains(&word)
                        && !KEYWORDS.contains(&word)
                    {
                        let (kind, want) = if called {
                            (UseKind::Call, Want::Call(u8::MAX - 1))
                        } else {
                            (UseKind::Value, Want::Value)
                        };
                        let link = if member {
                            Link::Member { of: UNKNOWN, want }
                        } else {
                            Link::Name { scope: 0, want }
                        };
                        self.b.add_use(word, (start + at) as u32, kind, link);
                    }
                    at = end;
                }
                _ => at += 1,
            }
        }
    }

    fn condition(&mut self, node: Node<'_>) -> ExprId {
        let guard = node.kind() == "preproc_ifdef" && children(node).into_iter().any(is_guard);
        // `#ifdef __cplusplus` keeps nothing from anybody but `extern "C"`.
        let plain = guard
            || node
                .child_by_field_name("name")
                .is_some_and(|name| self.b.text(name) == "__cplusplus");
        self.conditions += usize::from(!plain);
        for child in children(node) {
            // The name of a guard is no use of anything.
            if !(guard && Some(child) == node.child_by_field_name("name")) {
                self.node(child);
            }
        }
        self.conditions -= usize::from(!plain);
        UNKNOWN
    }

    /// Marks a definition as conditional inside a condition.
    pub(super) fn conditional(&mut self, def: crate::facts::DefId) {
        let conditional = self.conditions > 0;
        if let Some(entry) = self.b.facts.def_mut(def) {
            entry.conditional |= conditional;
        }
    }
}

/// Tells whether a `#define` is the guard of its file: the first thing in an `#ifndef` of the same name.
fn is_guard(node: Node<'_>) -> bool {
    let Some(outer) = node.parent().filter(|outer| outer.kind() == "preproc_ifdef") else {
        return false;
    };
    let first = outer.named_child(1);
    node.kind() == "preproc_def"
        && first == Some(node)
        && node.child_by_field_name("value").is_none()
        && outer.child(0).is_some_and(|word| word.kind() == "#ifndef")
}

/// Words of the language that a macro's text may hold.
const KEYWORDS: &[&str] = &[
    "if",
    "else",
    "for",
    "while",
    "do",
    "return",
    "switch",
    "case",
    "default",
    "break",
    "continue",
    "goto",
    "sizeof",
    "struct",
    "union",
    "enum",
    "const",
    "static",
    "extern",
    "inline",
    "void",
    "int",
    "char",
    "short",
    "long",
    "float",
    "double",
    "signed",
    "unsigned",
    "volatile",
    "typedef",
    "defined",
    "class",
    "template",
    "typename",
    "public",
    "private",
    "protected",
    "virtual",
    "override",
    "new",
    "delete",
    "this",
    "true",
    "false",
    "nullptr",
    "auto",
    "bool",
    "namespace",
    "using",
    "operator",
    "try",
    "catch",
    "throw",
    "__VA_ARGS__",
];
