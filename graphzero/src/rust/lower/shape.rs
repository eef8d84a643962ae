//! What the tokens of a macro's arguments tell before they are parsed again.
//!
//! Most readings that fail can be told from the tokens on the uppermost level, and a parse that fails costs more than one
//! that succeeds. A shape may refuse a reading only where the grammar has no room for it, or where one before it fits: the first
//! reading that parses stays the first. What error recovery made of a word that is a keyword everywhere else goes.

use crate::rust::nodes::K;
use crate::rust::syntax::Node;

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
    /// How many `;` there are, and whether one is the last token.
    semicolons: u32,
    closed: bool,
    comma: bool,
    /// `:` that no closure, lifetime or label explains.
    colon: bool,
    /// Something that lets a comma or `:` stand in a statement: generics, a `where`, a closure.
    listing: bool,
    /// A keyword that only items begin with, and a name after it.
    item: bool,
    /// A `let`, and a keyword whose condition may hold one.
    stray_let: bool,
    condition: bool,
    /// A group in braces, an attribute, or `!`: a statement may end without a semicolon.
    ending: bool,
}

impl Shape {
    /// Reads the tokens between the delimiters.
    pub fn of(tokens: &[Node<'_>]) -> Self {
        let mut shape = Self::default();
        let (mut tick, mut adjacent, mut operand) = (false, false, false);
        for (at, &token) in tokens.iter().enumerate() {
            let was_operand = std::mem::take(&mut operand);
            let next = tokens.get(at + 1).copied();
            match token.kind() {
                K::Identifier => operand = !soft_keyword(token.text().as_bytes()),
                K::StringLiteral
                | K::IntegerLiteral
                | K::RawStringLiteral
                | K::FloatLiteral
                | K::CharLiteral
                | K::BooleanLiteral => operand = true,
                K::TokenTree => shape.ending |= token.first_byte() == b'{',
                _ => match token.mark() {
                    "," => shape.comma = true,
                    "=>" => shape.arrow = true,
                    ";" => {
                        shape.semicolons += 1;
                        shape.closed = at + 1 == tokens.len();
                    }
                    ":" => shape.colon = true,
                    "'" => tick = true,
                    "|" | "||" | "<" | "<<" | "where" => shape.listing = true,
                    "!" => shape.ending = true,
                    // Before a group or at the end, it is a name, too.
                    "let" => {
                        shape.stray_let |= next.is_some_and(|next| is_name(next) || next.kind() == K::MutableSpecifier)
                    }
                    "if" | "while" | "match" => shape.condition = true,
                    // Alone, the grammar takes such a word for a name.
                    "pub" | "struct" | "enum" | "trait" | "mod" | "type" | "fn" | "use" => {
                        shape.item |= next.is_some_and(is_name);
                    }
                    "#" if begins_attribute(tokens, at) => shape.ending = true,
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
            Reading::Arguments => self.is_list() && self.semicolons == 0,
            // `[value; length]` has one semicolon, and something after it.
            Reading::Array => self.is_list() && self.semicolons < 2 && !self.closed,
            Reading::Statements => {
                !self.foreign && !self.arrow && (!self.comma || self.listing) && (self.semicolons > 0 || self.ending)
            }
        }
    }

    /// Tells whether an array differs from a list of expressions.
    pub const fn repeats(&self) -> bool {
        self.semicolons > 0
    }

    /// Tells whether expressions between commas are possible.
    const fn is_list(&self) -> bool {
        let stray = self.stray_let && !self.condition;
        !self.foreign && !self.arrow && !self.item && !stray && (!self.colon || self.listing)
    }
}

fn is_name(node: Node<'_>) -> bool {
    node.kind() == K::Identifier
}

/// Tells whether `#` is followed by what makes it an attribute.
fn begins_attribute(tokens: &[Node<'_>], at: usize) -> bool {
    tokens
        .get(at + 1)
        .is_some_and(|next| matches!(next.first_byte(), b'[' | b'!'))
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

/// Tells whether among the tokens of a group is a word that items are made with; without one no parse finds an item in it.
pub fn words_of_items(group: Node<'_>) -> bool {
    group.all_below().any(|token| match token.kind() {
        K::Identifier => token.text() == "union",
        K::Other => matches!(
            token.mark(),
            "fn" | "struct" | "enum" | "impl" | "trait" | "mod" | "union"
        ),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zero_contracts::CancelToken;

    use super::*;
    use crate::language::Lang;
    use crate::parse::Parsing;
    use crate::rust::RustLanguage;
    use crate::rust::lower::macros::written;
    use crate::rust::syntax::Syntax;

    /// Returns the first reading that parses, of all and of those that the shape leaves; none if the text is no arguments.
    fn first_readings(arguments: &str) -> Option<(Option<Reading>, Option<Reading>)> {
        let token = CancelToken::new();
        let mut parsing = Parsing::new(&token);
        let mut parse = |text: &str| {
            parsing
                .parse_clean(&RustLanguage, Lang::Rust, text.as_bytes())
                .expect("nobody cancels")
        };
        let text = format!("m!{{{arguments}}}");
        let tree = parse(&text)?;
        let syntax = Syntax::new(&text, &tree);
        let group = syntax.root().all_below().find(|node| node.kind() == K::TokenTree)?;
        let tokens: Vec<Node<'_>> = group.all_children().filter(|node| !node.is_comment()).collect();
        let shape = Shape::of(&tokens[1..tokens.len() - 1]);
        let mut parses = |reading: Reading| {
            let (source, _) = written(arguments, reading).expect("these take any text");
            parse(&source).is_some()
        };
        let all = [Reading::Arguments, Reading::Statements, Reading::Array];
        let first = all.into_iter().find(|&reading| parses(reading));
        let left = all.into_iter().find(|&reading| shape.fits(reading) && parses(reading));
        Some((first, left))
    }

    /// Tokens in any order, those that the shape looks at among them.
    fn token() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "a", "b", "1", "\"s\"", "'c'", "'l", ",", ";", ":", "::", "=>", "->", "=", "==", "<", ">", "&", "*", "-",
            "!", "?", ".", "..", "|", "||", "&&", "#", "#[a]", "#![a]", "()", "(a)", "[a]", "{}", "{ a }", "let", "if",
            "else", "while", "match", "for", "in", "loop", "fn", "pub", "struct", "enum", "trait", "mod", "type",
            "use", "impl", "where", "union", "const", "static", "unsafe", "async", "move", "mut", "ref", "return",
            "break", "as", "self", "Self", "crate", "$", "_", "@", "dyn", "r#x", "/* c */",
        ])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn a_shape_leaves_the_first_reading_that_parses(tokens in prop::collection::vec(token(), 1..7)) {
            let arguments = tokens.join(" ");
            if let Some((first, left)) = first_readings(&arguments) {
                prop_assert_eq!(first, left, "{}", arguments);
            }
        }
    }
}
