//! From a syntax tree to the facts of one Rust file: one walk that records definitions, uses, scopes and expressions.
//!
//! Locals are resolved here, by a stack of bindings that follows the walk; everything else is left to the resolver.
//! Arguments of macros are parsed a second time as what they look like (statements, a list of expressions, a match) and
//! walked with a shift of places, so that calls inside them are calls.

mod conditions;
mod exprs;
mod items;
mod macros;
mod patterns;
mod rules;
mod shape;
mod tokens;
mod types;

use std::collections::{HashMap, HashSet};

use zero_contracts::Error;

use super::RustLanguage;
use super::code::{Base, Expr, ExprId, Item, ItemKind, Link, Ns, RustCode, Scope, ScopeId, ScopeKind, TypeId, TypeRef};
use super::syntax::{Node, Syntax};
use crate::code::Code;
use crate::facts::{DefId, FileFacts, Kind, NONE, NameId, Span, UseId, UseKind};
use crate::facts_builder::FactsBuilder;
use crate::language::Lang;
use crate::parse::{MAX_DEPTH, Parsing, errors};

/// The walk over one file.
pub struct Lower<'t, 'p, 'c> {
    facts: FactsBuilder<'t>,
    code: RustCode,
    parsing: &'p mut Parsing<'c>,
    /// What is added to a place in the text that is walked (the file's, or a macro's arguments) to get the place in the file.
    shift: i64,
    /// The innermost scope.
    scope: ScopeId,
    /// The innermost definition.
    owner: DefId,
    /// Bindings in force, innermost last.
    locals: Vec<(NameId, ExprId)>,
    /// Bindings below this belong to an outer function and are not visible.
    floor: usize,
    depth: usize,
    /// Macros of this file so far.
    macros: HashMap<String, Vec<rules::Rule>>,
    /// Places of names that macros gave to items: definitions, not uses.
    macro_names: HashSet<u32>,
    /// How many parts were walked, to look at the token now and then.
    steps: u32,
    failed: Option<Error>,
}

/// Computes the facts of a file.
///
/// # Errors
/// `cancelled` and `deadline` from the token.
pub fn facts(text: &str, parsing: &mut Parsing<'_>) -> Result<FileFacts, Error> {
    let tree = parsing.parse(&RustLanguage, Lang::Rust, text.as_bytes())?;
    let mut facts = FactsBuilder::new(Lang::Rust, text.as_bytes());
    for error in errors(&tree) {
        facts.error(error);
        facts.opaque(error);
    }
    if tree.root_node().has_error() {
        // What recovery made of the rest may be mistaken, too.
        facts.opaque(Span::from(tree.root_node()));
    }
    let mut lower = Lower {
        facts,
        code: RustCode::default(),
        parsing,
        shift: 0,
        scope: 0,
        owner: NONE,
        locals: Vec::new(),
        floor: 0,
        depth: 0,
        macros: HashMap::new(),
        macro_names: HashSet::new(),
        steps: 0,
        failed: None,
    };
    lower.code.scopes.push(Scope {
        parent: NONE,
        kind: ScopeKind::File,
        items: Vec::new(),
        imports: Vec::new(),
    });
    // Expression and type 0 are the unknown ones.
    lower.code.exprs.push(Expr::Unknown);
    lower.code.types.push(TypeRef::Unknown);
    let syntax = Syntax::new(text, &tree);
    drop(tree);
    // Less than most files need, so that little is left over.
    lower.code.exprs.reserve(syntax.root().size() / 8);
    lower.facts.reserve(syntax.root().size() / 8);
    lower.conditions(syntax.root());
    lower.list(syntax.root());
    let Lower {
        facts,
        mut code,
        failed,
        ..
    } = lower;
    if let Some(error) = failed {
        return Err(error);
    }
    code.args.sort_by_key(|(id, _)| *id);
    code.calls.sort_unstable();
    code.exprs.shrink_to_fit();
    code.types.shrink_to_fit();
    code.items.shrink_to_fit();
    code.links.shrink_to_fit();
    code.calls.shrink_to_fit();
    Ok(facts.finish(Code::Rust(Box::new(code))))
}

/// After so many parts of the walk the token is looked at: some tens of microseconds.
const LOOK: u32 = 256;

/// The expression of which nothing is known.
pub const UNKNOWN: ExprId = 0;

impl<'t> Lower<'t, '_, '_> {
    fn span(&self, node: Node<'_>) -> Span {
        self.shifted(node.start_byte(), node.end_byte())
    }

    fn shifted(&self, start: usize, end: usize) -> Span {
        let place = |at: usize| (at as i64 + self.shift).max(0) as u32;
        Span {
            start: place(start),
            end: place(end),
        }
    }

    /// Runs a part of the walk one level deeper; too deep, the part's names are only noted as hidden.
    fn deeper<R>(&mut self, node: Node<'_>, none: R, walk: impl FnOnce(&mut Self) -> R) -> R {
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(LOOK) && self.failed.is_none() {
            self.failed = self.parsing.token().check().err();
        }
        if self.failed.is_some() {
            return none;
        }
        if self.depth >= MAX_DEPTH {
            let span = self.span(node);
            self.facts.opaque(span);
            return none;
        }
        self.depth += 1;
        let result = walk(self);
        self.depth -= 1;
        result
    }

    fn push_expr(&mut self, expr: Expr) -> ExprId {
        self.code.exprs.push(expr);
        self.code.exprs.len() as ExprId - 1
    }

    fn push_type(&mut self, ty: TypeRef) -> TypeId {
        self.code.types.push(ty);
        self.code.types.len() as TypeId - 1
    }

    fn push_scope(&mut self, kind: ScopeKind) -> ScopeId {
        self.code.scopes.push(Scope {
            parent: self.scope,
            kind,
            items: Vec::new(),
            imports: Vec::new(),
        });
        self.code.scopes.len() as ScopeId - 1
    }

    /// Runs a part of the walk inside a scope.
    fn within<R>(&mut self, scope: ScopeId, walk: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.scope, scope);
        let result = walk(self);
        self.scope = outer;
        result
    }

    /// Runs a part of the walk as the inside of a definition, without the locals around it.
    fn inside<R>(&mut self, def: DefId, walk: impl FnOnce(&mut Self) -> R) -> R {
        let owner = std::mem::replace(&mut self.owner, def);
        let floor = std::mem::replace(&mut self.floor, self.locals.len());
        let result = walk(self);
        self.locals.truncate(self.floor);
        self.owner = owner;
        self.floor = floor;
        result
    }

    /// Runs a part of the walk whose bindings end with it.
    fn bound<R>(&mut self, walk: impl FnOnce(&mut Self) -> R) -> R {
        let mark = self.locals.len();
        let result = walk(self);
        self.locals.truncate(mark);
        result
    }

    fn local(&mut self, name: &str) -> Option<ExprId> {
        let id = self.facts.name(name);
        self.locals[self.floor.min(self.locals.len())..]
            .iter()
            .rev()
            .find(|(n, _)| *n == id)
            .map(|(_, expr)| *expr)
    }

    fn bind(&mut self, name: &str, value: ExprId) {
        let name = self.facts.name(name);
        self.locals.push((name, value));
    }

    /// Adds a use of a name.
    fn use_name(&mut self, name: &str, at: u32, use_kind: UseKind, link: Link) -> UseId {
        // A raw identifier is the same name as without its mark.
        let (name, at) = name.strip_prefix("r#").map_or((name, at), |plain| (plain, at + 2));
        let id = self.facts.add_use(name, at, self.owner, use_kind);
        self.code.links.push(link);
        id
    }

    /// Adds a use of a path segment.
    fn use_path(&mut self, node: Node<'_>, base: Base, ns: Ns, use_kind: UseKind) -> UseId {
        let (text, at) = (node.text(), self.span(node).start);
        self.use_name(
            text,
            at,
            use_kind,
            Link::Path {
                base,
                scope: self.scope,
                ns,
            },
        )
    }

    /// Adds a definition with its resolver's part; it is declared in the current scope if `declare` is set.
    fn define(&mut self, name: Node<'_>, item: Node<'_>, kind: Kind, declare: bool) -> DefId {
        let text = name.text();
        let (mut at, full) = (self.span(name), self.span(item));
        let text = text.strip_prefix("r#").map_or(text, |plain| {
            at.start += 2;
            plain
        });
        self.define_at(text, at, full, kind, declare)
    }

    /// Adds a definition at a place.
    fn define_at(&mut self, text: &str, at: Span, full: Span, kind: Kind, declare: bool) -> DefId {
        let def = self.facts.def(text, kind, at, full, self.owner);
        self.code.items.push(Item {
            inner: NONE,
            outer: self.scope,
            kind: ItemKind::Other,
            generics: None,
        });
        if declare {
            self.code.scopes[self.scope as usize].items.push(def);
        }
        def
    }

    fn item_mut(&mut self, def: DefId) -> &mut Item {
        &mut self.code.items[def as usize]
    }
}
