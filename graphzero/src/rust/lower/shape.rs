//! What the tokens of a macro's arguments tell before they are parsed again.
//!
//! Most readings that fail can be told from the tokens on the uppermost level, and a parse that fails costs more than one
//! that succeeds. A shape refuses a reading only where the grammar has no room for it: what is
//! found stays, but for what error recovery made of readings that failed.

use tree_sitter::Node;

use crate::facts_builder;
use crate::rust::nodes::{K, kind};

/// How arguments are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A list of expressions.
    Arguments,
    /// The inside of an array.
    Array,
    /// A value and a pattern.
    Match,
    /// Statements or items.
    Statements,
}

/// The tokens of the uppermost level, as far as they decide between readings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// No reading as code fits: two operands side by side, or `#` that begins no attribute.
    foreign: bool,
    arrow: bool,
    semicolon: bool,
    comma: bool,
    /// `:` that no closure, lifetime or label explains.
    colon: bool,
    /// Something that lets a comma or `:` stand in a statement: generics, a `where`, a closure.
    listing: bool,
    /// A keyword that only items begin with, and a name after it.
    item: bool,
    /// A group in braces, an attribute, or `!`: a statement may end without a semicolon.
    ending: bool,
}

impl Shape {
    /// Reads the tokens between the delimiters.
    pub fn of(tokens: &[Node<'_>], source: &[u8]) -> Self {
        let mut shape = Self::default();
        let (mut tick, mut adjacent, mut operand) = (false, false, false);
        for (at, &token) in tokens.iter().enumerate() {
            let was_operand = std::mem::take(&mut operand);
            match kind(token) {
                K::Identifier => operand = !soft_keyword(&source[token.byte_range()]),
                K::StringLiteral
                | K::IntegerLiteral
                | K::RawStringLiteral
                | K::FloatLiteral
                | K::CharLiteral
                | K::BooleanLiteral => operand = true,
                K::TokenTree => shape.ending |= source.get(token.start_byte()) == Some(&b'{'),
                _ => match token.kind() {
                    "," => shape.comma = true,
                    "=>" => shape.arrow = true,
                    ";" => shape.semicolon = true,
                    ":" => shape.colon = true,
                    "'" => tick = true,
                    "|" | "||" | "<" | "<<" | "where" => shape.listing = true,
                    "!" => shape.ending = true,
                    // Alone, the grammar takes such a word for a name.
                    "pub" | "struct" | "enum" | "trait" | "mod" | "type" => {
                        shape.item |= tokens.get(at + 1).is_some_and(|next| kind(*next) == K::Identifier);
                    }
                    "#" if begins_attribute(tokens, at, source) => shape.ending = true,
                    "#" => shape.foreign = true,
                    _ => {}
                },
            }
            adjacent |= was_operand && operand;
        }
        // `&'a T` has a name on both sides without being two operands.
        shape.foreign |= adjacent && !tick;
        shape.colon &= !tick;
        shape
    }

    /// Tells whether a reading is possible.
    pub const fn fits(&self, reading: Reading) -> bool {
        match reading {
            Reading::Match => true,
            Reading::Arguments => {
                !self.foreign && !self.arrow && !self.semicolon && !self.item && (!self.colon || self.listing)
            }
            Reading::Array => !self.foreign && !self.arrow && !self.item && (!self.colon || self.listing),
            Reading::Statements => {
                !self.foreign && !self.arrow && (!self.comma || self.listing) && (self.semicolon || self.ending)
            }
        }
    }

    /// Tells whether an array differs from a list of expressions.
    pub const fn repeats(&self) -> bool {
        self.semicolon
    }
}

/// Tells whether `#` is followed by what makes it an attribute.
fn begins_attribute(tokens: &[Node<'_>], at: usize, source: &[u8]) -> bool {
    tokens
        .get(at + 1)
        .is_some_and(|next| matches!(source.get(next.start_byte()), Some(b'[' | b'!')))
}

/// Words that the token grammar takes for names and that stand beside others in code.
pub fn soft_keyword(word: &[u8]) -> bool {
    matches!(
        word,
        b"else"
            | b"in"
            | b"move"
            | b"ref"
            | b"raw"
            | b"dyn"
            | b"yield"
            | b"extern"
            | b"auto"
            | b"safe"
            | b"box"
            | b"try"
            | b"do"
            | b"become"
            | b"macro"
            | b"macro_rules"
            | b"default"
            | b"union"
            | b"gen"
            | b"async"
            | b"await"
            | b"const"
            | b"static"
            | b"unsafe"
            | b"mut"
            | b"true"
            | b"false"
            | b"return"
            | b"break"
            | b"continue"
            | b"virtual"
            | b"override"
            | b"priv"
    )
}

/// Tells whether a text has a word that items are made with; without one no parse finds an item in it.
pub fn words_of_items(text: &str) -> bool {
    facts_builder::words(text).any(|word| matches!(word, "fn" | "struct" | "enum" | "impl" | "trait" | "mod" | "union"))
}
