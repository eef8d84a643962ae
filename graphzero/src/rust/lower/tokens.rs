//! Expressions read from the tokens of a macro's arguments, without parsing their text again.
//!
//! Most arguments of `assert_eq!`, `format!` and the like are names, literals, paths, calls, fields and operators. These are
//! read here from the token tree that the grammar gives, as the grammar would read their text; whatever else stands among
//! the tokens makes the reader give up before it has noted anything, and the text is parsed.

use super::shape::soft_keyword;
use super::{Lower, UNKNOWN};
use crate::facts::UseKind;
use crate::rust::code::{Base, Expr, ExprId, Ns, Prim};
use crate::rust::nodes::K;
use crate::rust::syntax::Node;

/// Groups nested deeper than this are parsed.
const DEPTH: u32 = 64;

/// An expression over tokens.
enum Ast<'n> {
    /// A name, `self` or a literal: a node that is an expression as it stands.
    Leaf(Node<'n>),
    Path(Vec<Node<'n>>),
    Macro(Vec<Node<'n>>, Node<'n>),
    Call(Box<Ast<'n>>, List<'n>),
    Method(Box<Ast<'n>>, Node<'n>, List<'n>),
    Field(Box<Ast<'n>>, Node<'n>),
    Index(Box<Ast<'n>>, Box<Ast<'n>>),
    Try(Box<Ast<'n>>),
    Await(Box<Ast<'n>>),
    Ref(Box<Ast<'n>>),
    Deref(Box<Ast<'n>>),
    Negate(Box<Ast<'n>>),
    /// In parentheses: no longer a name that is called or handed on.
    Group(Box<Ast<'n>>),
    Tuple(List<'n>),
    Array(List<'n>),
    /// A comparison or a logical operation.
    Truth(Box<Ast<'n>>, Box<Ast<'n>>),
    Binary(Box<Ast<'n>>, Box<Ast<'n>>),
}

/// A list of expressions, each with whether a name was given to it.
pub struct List<'n>(Vec<(bool, Ast<'n>)>);

impl<'n> List<'n> {
    /// Returns the only expression of the list, if it has no comma.
    fn only(mut self, comma: bool) -> Option<Ast<'n>> {
        let (_, ast) = self.0.pop()?;
        (self.0.is_empty() && !comma).then_some(ast)
    }
}

/// Reads tokens; none if there is anything but plain expressions and commas.
///
/// `named` tells the macros that the file itself defines: their calls may define items, so they are parsed.
/// `arguments` may have names (`name = value`), as those of a call have not.
pub fn read<'n>(tokens: &[Node<'n>], arguments: bool, named: impl Fn(&str) -> bool) -> Option<List<'n>> {
    let reader = Reader { named: &named };
    reader.list(tokens, arguments, 0).map(|(list, _)| list)
}

struct Reader<'s> {
    named: &'s dyn Fn(&str) -> bool,
}

/// Tokens and how far they were read.
struct Cursor<'a, 'n> {
    tokens: &'a [Node<'n>],
    at: usize,
    depth: u32,
}

impl<'n> Cursor<'_, 'n> {
    fn peek(&self) -> Option<Node<'n>> {
        self.tokens.get(self.at).copied()
    }

    fn mark(&self) -> &'n str {
        self.peek().map_or("", Node::mark)
    }

    fn mark_after(&self) -> &'n str {
        self.tokens.get(self.at + 1).map_or("", |node| node.mark())
    }

    fn next(&mut self) -> Option<Node<'n>> {
        let node = self.peek();
        self.at += 1;
        node
    }
}

impl Reader<'_> {
    /// Returns the bracket that a group begins with.
    fn bracket(&self, node: Node<'_>) -> Option<u8> {
        (node.kind() == K::TokenTree).then(|| node.first_byte())
    }

    /// Reads expressions between commas; tells whether a comma ended them.
    fn list<'n>(&self, tokens: &[Node<'n>], arguments: bool, depth: u32) -> Option<(List<'n>, bool)> {
        if depth > DEPTH || generic(tokens) {
            return None;
        }
        let mut cursor = Cursor { tokens, at: 0, depth };
        let (mut all, mut comma) = (Vec::new(), false);
        while cursor.peek().is_some() {
            let named = arguments && cursor.mark_after() == "=";
            if named {
                if cursor.peek().map(Node::kind) != Some(K::Identifier) {
                    return None;
                }
                cursor.at += 2;
            }
            all.push((named, self.binary(&mut cursor, 0)?));
            comma = false;
            match cursor.next() {
                None => break,
                Some(node) if node.mark() == "," => comma = true,
                Some(_) => return None,
            }
        }
        Some((List(all), comma))
    }

    /// Reads the inside of a group as a list.
    fn group<'n>(&self, group: Node<'n>, depth: u32) -> Option<(List<'n>, bool)> {
        let tokens: Vec<Node<'n>> = group.all_children().filter(|node| !node.is_comment()).collect();
        self.list(tokens.get(1..tokens.len().checked_sub(1)?)?, false, depth + 1)
    }

    fn binary<'n>(&self, cursor: &mut Cursor<'_, 'n>, least: u8) -> Option<Ast<'n>> {
        let mut left = self.unary(cursor)?;
        while let Some(binding) = binding(cursor.mark()).filter(|&binding| binding > least) {
            cursor.at += 1;
            let right = Box::new(self.binary(cursor, binding)?);
            left = match binding {
                2..=4 => Ast::Truth(Box::new(left), right),
                _ => Ast::Binary(Box::new(left), right),
            };
        }
        Some(left)
    }

    fn unary<'n>(&self, cursor: &mut Cursor<'_, 'n>) -> Option<Ast<'n>> {
        let mut wraps: Vec<fn(Box<Ast<'n>>) -> Ast<'n>> = Vec::new();
        loop {
            match cursor.mark() {
                "&" => {
                    cursor.at += 1;
                    if cursor.peek().map(Node::kind) == Some(K::MutableSpecifier) {
                        cursor.at += 1;
                    }
                    wraps.push(Ast::Ref);
                }
                "*" => {
                    cursor.at += 1;
                    wraps.push(Ast::Deref);
                }
                "-" | "!" => {
                    cursor.at += 1;
                    wraps.push(Ast::Negate);
                }
                _ => break,
            }
        }
        let inner = self.postfix(cursor)?;
        Some(wraps.into_iter().rev().fold(inner, |inner, wrap| wrap(Box::new(inner))))
    }

    fn postfix<'n>(&self, cursor: &mut Cursor<'_, 'n>) -> Option<Ast<'n>> {
        let mut value = self.primary(cursor)?;
        loop {
            match cursor.mark() {
                "." => {
                    cursor.at += 1;
                    let name = cursor.next()?;
                    let called = cursor.peek().and_then(|node| self.bracket(node)) == Some(b'(');
                    value = match name.kind() {
                        K::Identifier if cursor.mark() == "::" => return None,
                        K::Identifier if called => {
                            let (args, _) = self.group(cursor.next()?, cursor.depth)?;
                            Ast::Method(Box::new(value), name, args)
                        }
                        K::Identifier => Ast::Field(Box::new(value), name),
                        K::IntegerLiteral if !called => Ast::Field(Box::new(value), name),
                        _ if name.mark() == "await" => Ast::Await(Box::new(value)),
                        _ => return None,
                    };
                }
                "?" => {
                    cursor.at += 1;
                    value = Ast::Try(Box::new(value));
                }
                _ => match cursor.peek().and_then(|node| self.bracket(node)) {
                    Some(b'(') => {
                        let (args, _) = self.group(cursor.next()?, cursor.depth)?;
                        value = Ast::Call(Box::new(value), args);
                    }
                    Some(b'[') => {
                        let (index, comma) = self.group(cursor.next()?, cursor.depth)?;
                        value = Ast::Index(Box::new(value), Box::new(index.only(comma)?));
                    }
                    // A literal of a record, or a block.
                    Some(_) => return None,
                    None => return Some(value),
                },
            }
        }
    }

    fn primary<'n>(&self, cursor: &mut Cursor<'_, 'n>) -> Option<Ast<'n>> {
        let node = cursor.next()?;
        match node.kind() {
            K::StringLiteral
            | K::RawStringLiteral
            | K::CharLiteral
            | K::BooleanLiteral
            | K::IntegerLiteral
            | K::FloatLiteral => Some(Ast::Leaf(node)),
            K::SelfKeyword if cursor.mark() != "::" => Some(Ast::Leaf(node)),
            K::Identifier | K::Crate => {
                let mut path = vec![node];
                while cursor.mark() == "::" {
                    cursor.at += 1;
                    path.push(cursor.next().filter(|name| name.kind() == K::Identifier)?);
                }
                if path
                    .iter()
                    .any(|name| name.kind() == K::Identifier && !self.is_name(name.text()))
                {
                    return None;
                }
                if cursor.mark() == "!" {
                    cursor.at += 1;
                    let name = path.last().map(|name| name.text())?;
                    let arguments = cursor.next().filter(|tree| tree.kind() == K::TokenTree)?;
                    return (!(self.named)(name)).then_some(Ast::Macro(path, arguments));
                }
                match path[..] {
                    [name] => (name.kind() == K::Identifier).then_some(Ast::Leaf(name)),
                    _ => Some(Ast::Path(path)),
                }
            }
            K::TokenTree => {
                let (list, comma) = self.group(node, cursor.depth)?;
                match self.bracket(node)? {
                    b'(' if list.0.len() == 1 && !comma => list.only(comma).map(|ast| Ast::Group(Box::new(ast))),
                    b'(' => Some(Ast::Tuple(list)),
                    b'[' => Some(Ast::Array(list)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn is_name(&self, text: &str) -> bool {
        !soft_keyword(text.as_bytes()) && !text.starts_with("r#")
    }
}

/// Tells whether angle brackets on a level may be generics.
fn generic(tokens: &[Node<'_>]) -> bool {
    let any = |marks: &[&str]| tokens.iter().any(|token| marks.contains(&token.mark()));
    any(&["<"]) && any(&[">", ">>"])
}

/// Returns how strongly a binary operator binds, as in the grammar; all of them from the left.
fn binding(mark: &str) -> Option<u8> {
    Some(match mark {
        "*" | "/" | "%" => 10,
        "+" | "-" => 9,
        "<<" | ">>" => 8,
        "&" => 7,
        "^" => 6,
        "|" => 5,
        "==" | "!=" | "<" | "<=" | ">" | ">=" => 4,
        "&&" => 3,
        "||" => 2,
        _ => return None,
    })
}

impl Lower<'_, '_, '_> {
    /// Walks a list that was read, of a macro's `arguments` or of an array; returns the values.
    pub fn token_list(&mut self, list: &List<'_>, arguments: bool) -> Vec<ExprId> {
        let walk = |(named, ast): &(bool, Ast<'_>)| match ast {
            Ast::Leaf(node) if arguments && !named => self.macro_argument(*node),
            Ast::Path(path) if arguments && !named => self.token_value(path, Ns::Argument, UseKind::Value),
            _ => self.token_expr(ast),
        };
        list.0.iter().map(walk).collect()
    }

    fn token_exprs(&mut self, list: &List<'_>) -> Box<[ExprId]> {
        list.0.iter().map(|(_, ast)| self.token_expr(ast)).collect()
    }

    fn token_expr(&mut self, ast: &Ast<'_>) -> ExprId {
        match ast {
            Ast::Leaf(node) => self.expr(*node),
            Ast::Path(path) => self.token_value(path, Ns::Value, UseKind::Value),
            Ast::Macro(path, arguments) => {
                self.token_path(path, Ns::Macro, UseKind::Macro);
                let name = path.last().map(|name| name.text()).unwrap_or_default();
                let args = self.macro_arguments(name, *arguments);
                self.macro_value(name, args)
            }
            Ast::Call(callee, args) => {
                let callee = match &**callee {
                    Ast::Leaf(name) => self.callee(*name),
                    Ast::Path(path) => self.token_value(path, Ns::Value, UseKind::Call),
                    other => self.token_expr(other),
                };
                self.call_of(callee, |s| s.token_exprs(args))
            }
            Ast::Method(recv, name, args) => {
                let recv = self.token_expr(recv);
                self.method_of(recv, *name, None, |s| s.token_exprs(args))
            }
            Ast::Field(recv, name) => {
                let recv = self.token_expr(recv);
                self.field_of(recv, *name)
            }
            Ast::Index(recv, index) => {
                let recv = self.token_expr(recv);
                let index = self.token_expr(index);
                self.push_expr(Expr::Index { recv, index })
            }
            Ast::Try(inner) => {
                let inner = self.token_expr(inner);
                self.push_expr(Expr::Try(inner))
            }
            Ast::Await(inner) => {
                let inner = self.token_expr(inner);
                self.push_expr(Expr::Await(inner))
            }
            Ast::Ref(inner) => {
                let inner = self.token_expr(inner);
                self.push_expr(Expr::Ref(inner))
            }
            Ast::Deref(inner) => {
                let inner = self.token_expr(inner);
                self.push_expr(Expr::Deref(inner))
            }
            Ast::Negate(inner) => {
                let inner = self.token_expr(inner);
                self.push_expr(Expr::Negate(inner))
            }
            Ast::Group(inner) => self.token_expr(inner),
            Ast::Tuple(list) => {
                let all = self.token_exprs(list);
                self.push_expr(Expr::Tuple(all))
            }
            Ast::Array(list) => {
                let all = self.token_exprs(list);
                self.push_expr(Expr::Array(all))
            }
            Ast::Truth(left, right) => {
                self.token_expr(left);
                self.token_expr(right);
                self.push_expr(Expr::Prim(Prim::Bool))
            }
            Ast::Binary(left, right) => {
                let left = self.token_expr(left);
                let right = self.token_expr(right);
                self.push_expr(Expr::Binary { left, right })
            }
        }
    }

    fn token_value(&mut self, path: &[Node<'_>], ns: Ns, use_kind: UseKind) -> ExprId {
        let id = self.token_path(path, ns, use_kind);
        id.map_or(UNKNOWN, |id| self.push_expr(Expr::Path(id)))
    }

    /// Walks a path of names; none if it is not one that ends in a use.
    fn token_path(&mut self, path: &[Node<'_>], ns: Ns, use_kind: UseKind) -> Option<u32> {
        let (last, before) = path.split_last()?;
        let mut base = Base::Lexical;
        for (at, segment) in before.iter().enumerate() {
            base = match segment.kind() {
                K::Crate => Base::Crate,
                _ if at == 0 && segment.text() == "Self" => Base::SelfType,
                _ => Base::Use(self.use_path(*segment, base, Ns::Type, UseKind::Type)),
            };
        }
        Some(self.use_path(*last, base, ns, use_kind))
    }
}
