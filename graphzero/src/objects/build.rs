//! Gathers facts and code of one file while its language walks the tree.

use tree_sitter::Node;

use super::code::{Binding, Call, Expr, ExprId, Function, Item, Link, ObjectCode, Scope, ScopeId, Shape};
use crate::facts::{DefId, Kind, NONE, NameId, Span, UseId, UseKind};
use crate::facts_builder::FactsBuilder;
use crate::language::Lang;
use crate::parse::MAX_DEPTH;

/// The expression of which nothing is known.
pub const UNKNOWN: ExprId = 0;

/// Facts and code in the making.
pub struct Builder<'t> {
    /// The facts.
    pub facts: FactsBuilder<'t>,
    /// The code.
    pub code: ObjectCode,
    /// The text.
    pub text: &'t str,
    /// The innermost scope.
    pub scope: ScopeId,
    /// The innermost definition.
    pub owner: DefId,
    /// The class whose methods are walked.
    pub class: Option<DefId>,
    depth: usize,
}

impl<'t> Builder<'t> {
    /// Begins with the module's scope.
    pub fn new(lang: Lang, text: &'t str) -> Self {
        let mut code = ObjectCode::default();
        code.scopes.push(Scope {
            parent: NONE,
            class: false,
            names: Vec::new(),
        });
        code.exprs.push(Expr::Unknown);
        let facts = FactsBuilder::new(lang, text.as_bytes());
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

    /// Adds one of several values.
    pub fn choice(&mut self, mut all: Vec<ExprId>) -> ExprId {
        all.retain(|&e| e != UNKNOWN);
        match all[..] {
            [] => UNKNOWN,
            [one] => one,
            _ => self.expr(Expr::Choice(all.into())),
        }
    }

    /// Adds the result of a call of which nothing but the callee matters.
    pub fn call(&mut self, callee: ExprId) -> ExprId {
        self.code.calls.push(Call {
            callee,
            args: Box::default(),
            types: Box::default(),
            expected: UNKNOWN,
            new: false,
        });
        self.expr(Expr::Call(self.code.calls.len() as u32 - 1))
    }

    /// Adds what a function takes and gives.
    pub fn function(&mut self, function: Function) -> u32 {
        self.code.functions.push(function);
        self.code.functions.len() as u32 - 1
    }

    /// Adds a list of members.
    pub fn shape(&mut self, shape: Shape) -> u32 {
        self.code.shapes.push(shape);
        self.code.shapes.len() as u32 - 1
    }

    /// Adds a name as a value, with its use.
    pub fn name_use(&mut self, node: Node<'_>, kind: UseKind, ty: bool) -> ExprId {
        let text = self.text(node);
        self.add_use(
            text,
            node.start_byte() as u32,
            kind,
            Link::Name { scope: self.scope, ty },
        );
        let name = self.facts.name(text);
        self.expr(Expr::Name {
            scope: self.scope,
            name,
            ty,
        })
    }

    /// Adds a member of a value, with its use.
    pub fn member_use(&mut self, of: ExprId, node: Node<'_>, kind: UseKind) -> ExprId {
        let text = self.text(node);
        self.add_use(text, node.start_byte() as u32, kind, Link::Member { of });
        let name = self.facts.name(text);
        self.expr(Expr::Member {
            of,
            name,
            ty: kind == UseKind::Type,
        })
    }

    /// Adds a use.
    pub fn add_use(&mut self, name: &str, at: u32, kind: UseKind, link: Link) -> UseId {
        let id = self.facts.add_use(name, at, self.owner, kind);
        self.code.links.push(link);
        id
    }

    /// Adds a definition.
    pub fn define(&mut self, name: Node<'_>, full: Node<'_>, kind: Kind, body: Option<Node<'_>>) -> DefId {
        let text = self.text(name);
        let def = self
            .facts
            .def(text, kind, Span::from(name), Span::from(full), self.owner);
        if let (Some(entry), Some(body)) = (self.facts.def_mut(def), body) {
            entry.head = body.start_byte() as u32;
        }
        self.code.items.push(Item::default());
        def
    }

    /// Binds a name in the current scope.
    pub fn bind(&mut self, name: &str, binding: Binding) {
        let name = self.facts.name(name);
        self.code.scopes[self.scope as usize].names.push((name, binding));
    }

    /// Binds a name of the current scope to something else.
    pub fn rebind(&mut self, name: &str, binding: Binding) {
        let id = self.facts.name(name);
        self.code.scopes[self.scope as usize].names.retain(|(n, _)| *n != id);
        self.bind(name, binding);
    }

    /// Tells what a name is bound to in the current scope itself.
    pub fn bound_here(&mut self, name: &str) -> Option<Binding> {
        let name: NameId = self.facts.name(name);
        self.code.scopes[self.scope as usize]
            .names
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, binding)| *binding)
    }

    /// Runs a part of the walk in a scope of its own.
    pub fn scoped<R>(&mut self, class: bool, walk: impl FnOnce(&mut Self) -> R) -> R {
        self.code.scopes.push(Scope {
            parent: self.scope,
            class,
            names: Vec::new(),
        });
        let scope = self.code.scopes.len() as ScopeId - 1;
        let outer = std::mem::replace(&mut self.scope, scope);
        let result = walk(self);
        self.scope = outer;
        result
    }

    /// Runs a part of the walk as the inside of a definition.
    pub fn inside<R>(&mut self, def: DefId, walk: impl FnOnce(&mut Self) -> R) -> R {
        let owner = std::mem::replace(&mut self.owner, def);
        let result = walk(self);
        self.owner = owner;
        result
    }

    /// Returns a definition's resolver part.
    pub fn item(&mut self, def: DefId) -> &mut Item {
        &mut self.code.items[def as usize]
    }
}

/// Returns the named children of a node without comments.
pub fn children<'n>(node: Node<'n>) -> Vec<Node<'n>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .filter(|child| !child.is_extra())
        .collect()
}
