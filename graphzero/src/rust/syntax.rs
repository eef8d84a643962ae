//! The syntax tree of a text as a plain array.
//!
//! The library's trees are compact, so every step in one (a child, a field, a kind) costs a search. The walk takes many steps
//! at each node: one pass with a single cursor copies the tree, in preorder, and every step after that is a look
//! into an array. What no code looks at, below literals, attributes and the rules of macros, is left out.

use std::ops::Range;

use tree_sitter::Tree;

use super::nodes::{F, K, Symbol, field_of_id, symbol};

/// Nodes that are looked at as texts only: what is below them is left out.
const LEAVES: [K; 6] = [
    K::StringLiteral,
    K::RawStringLiteral,
    K::CharLiteral,
    K::AttributeItem,
    K::InnerAttribute,
    K::MacroRule,
];

/// Stands for what the grammar has no word for.
const BROKEN: u16 = u16::MAX;

/// A tree with its text.
pub struct Syntax<'t> {
    text: &'t str,
    /// In preorder; never empty.
    nodes: Vec<Raw>,
}

#[derive(Clone, Copy)]
struct Raw {
    start: u32,
    end: u32,
    /// Where the tree goes on after this node and all below it.
    next: u32,
    symbol: u16,
    kind: K,
    field: F,
}

/// A node of a tree.
#[derive(Clone, Copy)]
pub struct Node<'n> {
    tree: &'n Syntax<'n>,
    at: u32,
}

impl<'t> Syntax<'t> {
    /// Copies a tree.
    pub fn new(text: &'t str, tree: &Tree) -> Self {
        let mut nodes: Vec<Raw> = Vec::with_capacity(tree.root_node().descendant_count());
        let mut cursor = tree.walk();
        // The nodes around the cursor, each with how many of its children are yet to come.
        let mut open: Vec<(usize, u32)> = Vec::new();
        loop {
            let (node, at) = (cursor.node(), nodes.len());
            let mut id = node.kind_id();
            // Tokens of macros have no fields.
            let plain = open
                .last()
                .is_some_and(|&(around, _)| nodes[around].kind == K::TokenTree);
            if plain && LEAVES.contains(&symbol(id).kind) && node.has_error() {
                // A broken literal is none: what is below it, which would tell, is left out.
                id = BROKEN;
            }
            let &Symbol { kind, named, .. } = symbol(id);
            let field = if plain { None } else { cursor.field_id() };
            nodes.push(Raw {
                start: node.start_byte() as u32,
                end: node.end_byte() as u32,
                next: at as u32 + 1,
                symbol: id,
                kind,
                field: field.map_or(F::None, |id| field_of_id(id.get())),
            });
            let children = if named && !LEAVES.contains(&kind) {
                node.child_count()
            } else {
                0
            };
            if children > 0 && cursor.goto_first_child() {
                open.push((at, children - 1));
                continue;
            }
            // Asking the cursor for a sibling that is not there costs as much as one that is.
            loop {
                let Some((around, left)) = open.last_mut() else {
                    return Self { text, nodes };
                };
                if *left > 0 && cursor.goto_next_sibling() {
                    *left -= 1;
                    break;
                }
                let around = *around;
                nodes[around].next = nodes.len() as u32;
                open.pop();
                cursor.goto_parent();
            }
        }
    }

    /// Returns the uppermost node.
    pub fn root(&self) -> Node<'_> {
        Node { tree: self, at: 0 }
    }
}

impl<'n> Node<'n> {
    fn raw(self) -> &'n Raw {
        &self.tree.nodes[self.at as usize]
    }

    /// Tells nodes of one tree apart.
    pub const fn id(self) -> u32 {
        self.at
    }

    /// Returns its kind, if code looks at that.
    pub fn kind(self) -> K {
        self.raw().kind
    }

    /// Returns its kind in the grammar's words: a token of punctuation, or a keyword, is its own.
    pub fn mark(self) -> &'static str {
        symbol(self.raw().symbol).text
    }

    /// Returns its text.
    pub fn text(self) -> &'n str {
        self.tree.text.get(self.byte_range()).unwrap_or_default()
    }

    /// Returns the first byte of its text; 0 if it is empty.
    pub fn first_byte(self) -> u8 {
        self.text().bytes().next().unwrap_or_default()
    }

    /// Returns the text of the whole tree.
    pub fn whole_text(self) -> &'n str {
        self.tree.text
    }

    /// Returns where it begins.
    pub fn start_byte(self) -> usize {
        self.raw().start as usize
    }

    /// Returns where it ends.
    pub fn end_byte(self) -> usize {
        self.raw().end as usize
    }

    /// Returns where it lies.
    pub fn byte_range(self) -> Range<usize> {
        self.start_byte()..self.end_byte()
    }

    /// Yields its children: named ones, punctuation, keywords and comments.
    pub fn all_children(self) -> impl Iterator<Item = Node<'n>> + use<'n> {
        let (tree, end) = (self.tree, self.raw().next);
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let node = Node { tree, at };
                at = node.raw().next;
                node
            })
        })
    }

    /// Yields all nodes below it.
    pub fn all_below(self) -> impl Iterator<Item = Node<'n>> + use<'n> {
        let tree = self.tree;
        (self.at + 1..self.raw().next).map(move |at| Node { tree, at })
    }

    /// Returns how many nodes there are, itself among them.
    pub fn size(self) -> usize {
        (self.raw().next - self.at) as usize
    }

    /// Yields its named children.
    pub fn named_children(self) -> impl Iterator<Item = Node<'n>> + use<'n> {
        self.all_children().filter(|child| symbol(child.raw().symbol).named)
    }

    /// Yields its named children without comments.
    pub fn children(self) -> impl Iterator<Item = Node<'n>> + use<'n> {
        self.named_children().filter(|child| !child.is_comment())
    }

    /// Returns its only or first named child that is no comment.
    pub fn first_child(self) -> Option<Node<'n>> {
        self.children().next()
    }

    /// Returns the child in a field.
    pub fn field(self, field: F) -> Option<Node<'n>> {
        self.all_children().find(|child| child.raw().field == field)
    }

    /// Yields the named children, without comments, of the child in a field; nothing without one.
    pub fn children_in(self, field: F) -> impl Iterator<Item = Node<'n>> + use<'n> {
        self.field(field).into_iter().flat_map(Node::children)
    }

    /// Tells whether it is a comment.
    pub fn is_comment(self) -> bool {
        matches!(self.kind(), K::LineComment | K::BlockComment)
    }

    /// Tells whether there is nothing below it.
    pub fn is_leaf(self) -> bool {
        self.raw().next == self.at + 1
    }

    /// Returns the nodes that hold a byte, from this one down to the innermost.
    pub fn path_to(self, byte: usize) -> Vec<Node<'n>> {
        let mut path = vec![self];
        while let Some(&last) = path.last()
            && let Some(child) = last.all_children().find(|child| child.byte_range().contains(&byte))
        {
            path.push(child);
        }
        path
    }
}
