//! Gathers facts and code of one file while its language walks the tree.

use tree_sitter::{Node, Tree};

use super::code::{DeclaredCode, Expr, ExprId, Import, Item, Link, Local, MANY, Scope, ScopeId, Want};
use crate::code::Code;
use crate::facts::{DefId, FileFacts, Kind, NONE, Span, UseKind};
use crate::facts_builder::FactsBuilder;
use crate::language::Lang;
use crate::parse::{MAX_DEPTH, errors};

/// The expression of which nothing is known.
pub const UNKNOWN: ExprId = 0;

/// Facts and code in the making.
pub struct Builder<'t> {
    /// The facts.
    pub facts: FactsBuilder<'t>,
    /// The code.
    pub code: DeclaredCode,
    /// The text.
    pub text: &'t str,
    /// The innermost scope.
    pub scope: ScopeId,
    /// The innermost definition.
    pub owner: DefId,
    /// The type whose members are walked.
    pub class: Option<DefId>,
    depth: usize,
}

impl<'t> Builder<'t> {
    /// Begins with the file's scope; what the parser could not read is noted.
    pub fn new(lang: Lang, text: &'t str, tree: &Tree) -> Self {
        let mut code = DeclaredCode::default();
        code.scopes.push(Scope {
            parent: NONE,
            of: NONE,
            locals: Vec::new(),
            brought: Vec::new(),
            opened: Vec::new(),
        });
        code.exprs.push(Expr::Unknown);
        let mut facts = FactsBuilder::new(lang, text.as_bytes());
        for error in errors(tree) {
            facts.error(error);
        }
        if tree.root_node().has_error() {
            // What recovery made of the rest may be mistaken, too.
            facts.opaque(Span::from(tree.root_node()));
        }
        Self {
            facts,
            code,
            text,
            scope: 0,
            owner: NONE,
            class: None,
            depth: 0,
        }
    }

    /// Ends the facts.
    pub fn finish(self) -> FileFacts {
        self.facts.finish(Code::Declared(Box::new(self.code)))
    }

    /// Returns the text of a node.
    pub fn text(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// Enters a level of the walk; too deep, the node's names are only noted as hidden and it is left alone.
    pub fn enter(&mut self, node: Node<'_>) -> bool {
        if self.depth >= MAX_DEPTH {
            self.facts.opaque(Span::from(node));
            return false;
        }
        self.depth += 1;
        true
    }

    /// Leaves a level.
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Adds an expression.
    pub fn expr(&mut self, expr: Expr) -> ExprId {
        self.code.exprs.push(expr);
        self.code.exprs.len() as ExprId - 1
    }

    /// Adds something of a type, if the type is known at all.
    pub fn instance(&mut self, ty: ExprId) -> ExprId {
        if ty == UNKNOWN {
            UNKNOWN
        } else {
            self.expr(Expr::Instance(ty))
        }
    }

    /// Adds a name as a value or type, with its use.
    pub fn name_use(&mut self, node: Node<'_>, kind: UseKind, want: Want) -> ExprId {
        let (text, at) = (self.text(node), node.start_byte() as u32);
        let scope = self.scope;
        self.add_use(text, at, kind, Link::Name { scope, want });
        let name = self.facts.name(text);
        let ty = want == Want::Type;
        self.expr(Expr::Name { scope, name, at, ty })
    }

    /// Adds a member of a value or type, with its use.
    pub fn member_use(&mut self, of: ExprId, node: Node<'_>, kind: UseKind, want: Want) -> ExprId {
        let text = self.text(node);
        self.add_use(text, node.start_byte() as u32, kind, Link::Member { of, want });
        let name = self.facts.name(text);
        self.expr(Expr::Member { of, name })
    }

    /// Adds a use.
    pub fn add_use(&mut self, name: &str, at: u32, kind: UseKind, link: Link) {
        self.facts.add_use(name, at, self.owner, kind);
        self.code.links.push(link);
    }

    /// Adds a definition inside the innermost one.
    pub fn define(&mut self, name: Node<'_>, full: Node<'_>, kind: Kind, body: Option<Node<'_>>) -> DefId {
        let text = self.text(name);
        let def = self
            .facts
            .def(text, kind, Span::from(name), Span::from(full), self.owner);
        let doc = self.doc(full);
        if let Some(entry) = self.facts.def_mut(def) {
            if let Some(body) = body {
                entry.head = body.start_byte() as u32;
            }
            if let Some(doc) = doc {
                entry.doc = doc;
            }
        }
        self.code.items.push(Item {
            bases: Vec::new(),
            value: UNKNOWN,
            signature: NONE,
            least: 0,
            most: MANY,
            body: body.is_some(),
            outer: false,
            local: false,
        });
        def
    }

    /// Returns the comments right above a node.
    fn doc(&self, node: Node<'_>) -> Option<Span> {
        let mut span: Option<Span> = None;
        let mut below = node;
        while let Some(comment) = below.prev_sibling().filter(|c| c.kind().ends_with("comment")) {
            let lines = below.start_position().row.saturating_sub(comment.end_position().row);
            let trails = comment
                .prev_sibling()
                .is_some_and(|before| before.end_position().row == comment.start_position().row);
            if lines > 1 || trails {
                break;
            }
            let end = span.map_or(comment.end_byte() as u32, |s| s.end);
            span = Some(Span {
                start: comment.start_byte() as u32,
                end,
            });
            below = comment;
        }
        span
    }

    /// Says whether a definition is seen outside its module.
    pub fn public(&mut self, def: DefId, public: bool) {
        if let Some(entry) = self.facts.def_mut(def) {
            entry.public = public;
        }
    }

    /// Says that a definition is a test.
    pub fn test(&mut self, def: DefId) {
        if let Some(entry) = self.facts.def_mut(def) {
            entry.test = true;
        }
    }

    /// Adds a local variable that is known from a byte on.
    pub fn local(&mut self, name: &str, from: usize, value: ExprId) {
        self.add_local(name, from, value, false);
    }

    /// Adds a type parameter with its bound.
    pub fn type_parameter(&mut self, name: Node<'_>, bound: ExprId) {
        self.add_local(self.text(name), name.start_byte(), bound, true);
    }

    fn add_local(&mut self, name: &str, from: usize, value: ExprId, ty: bool) {
        let name = self.facts.name(name);
        let from = from as u32;
        self.code.scopes[self.scope as usize]
            .locals
            .push(Local { name, from, value, ty });
    }

    /// Adds an import; returns its index.
    pub fn import(&mut self, what: &str, bound: Option<&str>, opened: bool, place: Span) -> u32 {
        let what = self.facts.name(what);
        let bound = bound.map_or(NONE, |bound| self.facts.name(bound));
        self.code.imports.push(Import {
            what,
            bound,
            opened,
            at: place.start,
            end: place.end,
        });
        self.code.imports.len() as u32 - 1
    }

    /// Runs a part of the walk in a scope of its own, in which the members of `of` are seen.
    pub fn scoped<R>(&mut self, of: DefId, walk: impl FnOnce(&mut Self) -> R) -> R {
        let outer = self.open_scope(of);
        let result = walk(self);
        self.scope = outer;
        result
    }

    /// Begins a scope; returns the one around it, to be put back.
    pub fn open_scope(&mut self, of: DefId) -> ScopeId {
        self.code.scopes.push(Scope {
            parent: self.scope,
            of,
            locals: Vec::new(),
            brought: Vec::new(),
            opened: Vec::new(),
        });
        std::mem::replace(&mut self.scope, self.code.scopes.len() as ScopeId - 1)
    }

    /// Returns a definition's resolver part.
    pub fn item(&mut self, def: DefId) -> &mut Item {
        &mut self.code.items[def as usize]
    }

    /// Notes the parameters of a function: their written types, how many are needed, and whether there may be more.
    pub fn parameters(&mut self, def: DefId, types: &[String], optional: usize, variadic: bool) {
        let signature = self.facts.name(&format!("({})", types.join(",")));
        let count = u8::try_from(types.len()).unwrap_or(MANY);
        let item = self.item(def);
        item.signature = signature;
        item.least = count.saturating_sub(u8::try_from(optional).unwrap_or(MANY));
        item.most = if variadic { MANY } else { count };
    }
}

/// Returns the named children of a node without comments.
pub fn children<'n>(node: Node<'n>) -> Vec<Node<'n>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .filter(|child| !child.is_extra())
        .collect()
}

/// Returns the children of a node under a field.
pub fn fields<'n>(node: Node<'n>, name: &str) -> Vec<Node<'n>> {
    let mut cursor = node.walk();
    node.children_by_field_name(name, &mut cursor).collect()
}

/// Writes a type without white space and words that do not tell functions apart.
pub fn written(text: &str) -> String {
    text.split(|c: char| c.is_whitespace())
        .filter(|word| !word.is_empty())
        .collect()
}

/// Counts arguments as a link holds them.
pub fn count(arguments: usize) -> u8 {
    u8::try_from(arguments).unwrap_or(MANY - 1).min(MANY - 1)
}
