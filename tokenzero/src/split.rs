//! Cuts a text into the pieces that are encoded one by one, as each encoding's splitting pattern would.
//!
//! The reference does this with a regular expression, which dominates its time. Here every alternative of the pattern is
//! written out over character classes. Each function notes the alternatives it follows, in the order in which the regex
//! engine tries them; the tests compare the result with the reference's on every kind of character.

use crate::unicode::{LETTER, LOWER, MARK, NUMBER, OTHER, SPACE, UPPER, class_at};

/// Which pattern splits the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// o200k_base and o200k_harmony.
    O200k,
    /// cl100k_base.
    Cl100k,
    /// p50k_base and r50k_base.
    Gpt2,
}

impl Pattern {
    /// Returns the end of the piece that starts at byte `at`, which lies inside the text, on a character's first byte.
    #[inline(always)]
    pub(crate) fn end_of_piece(self, text: &[u8], at: usize) -> usize {
        match self {
            Self::O200k => o200k(text, at),
            Self::Cl100k => cl100k(text, at),
            Self::Gpt2 => gpt2(text, at),
        }
    }
}

/// ```text
/// 1  [^\r\n\p{L}\p{N}]? [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]* [\p{Ll}\p{Lm}\p{Lo}\p{M}]+ (?i:'s|'t|'re|'ve|'m|'ll|'d)?
/// 2  [^\r\n\p{L}\p{N}]? [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+ [\p{Ll}\p{Lm}\p{Lo}\p{M}]* (?i:'s|'t|'re|'ve|'m|'ll|'d)?
/// 3  \p{N}{1,3}
/// 4   ?[^\s\p{L}\p{N}]+ [\r\n/]*
/// 5  \s*[\r\n]+
/// 6  \s+(?!\S)
/// 7  \s+
/// ```
#[inline(always)]
fn o200k(text: &[u8], at: usize) -> usize {
    let Some((class, len)) = class_at(text, at) else {
        return at;
    };
    if class & LETTER != 0 {
        return with_contraction(text, CasedWord::at(text, at).end());
    }
    if class & NUMBER != 0 {
        return digits(text, at + len, 2);
    }
    let next = at + len;
    if !is_newline(text[at])
        && let Some((after, _)) = class_at(text, next)
        && after & (LETTER | MARK) != 0
    {
        // Alternatives 1 and 2 with the prefix. A mark may be the prefix or the word's own first character: the engine
        // tries the prefix first, but prefers alternative 1 without it to alternative 2 with it.
        let word = CasedWord::at(text, next);
        let end = match word.lower_end {
            None if class & MARK != 0 => next,
            _ => word.end(),
        };
        return with_contraction(text, end);
    }
    if class & MARK != 0 {
        return with_contraction(text, next);
    }
    if let Some(mut end) = punctuation(text, at, class) {
        while text.get(end).is_some_and(|byte| matches!(byte, b'\r' | b'\n' | b'/')) {
            end += 1;
        }
        return end;
    }
    let space = Spaces::at(text, at);
    space.newline_end.unwrap_or_else(|| space.before_word(text))
}

/// ```text
/// 1  '(?i:[sdmt]|ll|ve|re)
/// 2  [^\r\n\p{L}\p{N}]?+ \p{L}++
/// 3  \p{N}{1,3}+
/// 4   ?[^\s\p{L}\p{N}]++ [\r\n]*+
/// 5  \s++$
/// 6  \s*[\r\n]
/// 7  \s+(?!\S)
/// 8  \s
/// ```
#[inline(always)]
fn cl100k(text: &[u8], at: usize) -> usize {
    let Some((class, len)) = class_at(text, at) else {
        return at;
    };
    if class & LETTER != 0 {
        return run(text, at + len, LETTER);
    }
    if class & NUMBER != 0 {
        return digits(text, at + len, 2);
    }
    if text[at] == b'\'' {
        let end = with_contraction(text, at);
        if end > at {
            return end;
        }
    }
    if !is_newline(text[at]) {
        let end = run(text, at + len, LETTER);
        if end > at + len {
            return end;
        }
    }
    if let Some(mut end) = punctuation(text, at, class) {
        while text.get(end).is_some_and(|byte| is_newline(*byte)) {
            end += 1;
        }
        return end;
    }
    let space = Spaces::at(text, at);
    match space.newline_end {
        Some(end) if space.end < text.len() => end,
        _ => space.before_word(text),
    }
}

/// ```text
/// 1  '(?:[sdmt]|ll|ve|re)
/// 2   ?\p{L}++
/// 3   ?\p{N}++
/// 4   ?[^\s\p{L}\p{N}]++
/// 5  \s++$
/// 6  \s+(?!\S)
/// 7  \s
/// ```
#[inline(always)]
fn gpt2(text: &[u8], at: usize) -> usize {
    if text[at] == b'\'' {
        match &text[at + 1..] {
            [b's' | b'd' | b'm' | b't', ..] => return at + 2,
            [b'l', b'l', ..] | [b'v' | b'r', b'e', ..] => return at + 3,
            _ => {}
        }
    }
    let from = if text[at] == b' ' { at + 1 } else { at };
    match class_at(text, from) {
        Some((class, len)) if class & LETTER != 0 => run(text, from + len, LETTER),
        Some((class, len)) if class & NUMBER != 0 => run(text, from + len, NUMBER),
        Some((class, _)) if class & SPACE == 0 => punctuation(text, from, class).unwrap_or(from),
        _ => Spaces::at(text, at).before_word(text),
    }
}

const fn is_newline(byte: u8) -> bool {
    byte == b'\r' || byte == b'\n'
}

/// Ends the run of characters of `classes` that starts at `at`.
#[inline(always)]
fn run(text: &[u8], mut at: usize, classes: u8) -> usize {
    while let Some((class, len)) = class_at(text, at) {
        if class & classes == 0 {
            break;
        }
        at += len;
    }
    at
}

/// Ends a run of at most `more` further digits.
#[inline(always)]
fn digits(text: &[u8], mut at: usize, more: usize) -> usize {
    for _ in 0..more {
        match class_at(text, at) {
            Some((class, len)) if class & NUMBER != 0 => at += len,
            _ => break,
        }
    }
    at
}

/// ` ?[^\s\p{L}\p{N}]+` at a character of the given class.
#[inline(always)]
fn punctuation(text: &[u8], at: usize, class: u8) -> Option<usize> {
    const NOT: u8 = SPACE | LETTER | NUMBER;
    let mut end = if class & NOT == 0 {
        at
    } else if text[at] == b' ' {
        at + 1
    } else {
        return None;
    };
    let start = end;
    while let Some((class, len)) = class_at(text, end) {
        if class & NOT != 0 {
            break;
        }
        end += len;
    }
    (end > start).then_some(end)
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`: returns the end with the contraction, if there is one. Ignoring case, Unicode has a
/// third s: ſ.
#[inline(always)]
fn with_contraction(text: &[u8], at: usize) -> usize {
    if text.get(at) != Some(&b'\'') {
        return at;
    }
    match &text[at + 1..] {
        [b's' | b'S' | b't' | b'T' | b'm' | b'M' | b'd' | b'D', ..] => at + 2,
        [b'r' | b'R' | b'v' | b'V', b'e' | b'E', ..] | [b'l' | b'L', b'l' | b'L', ..] | [0xc5, 0xbf, ..] => at + 3,
        _ => at,
    }
}

/// Where a word of o200k ends, by the bodies of alternatives 1 and 2.
struct CasedWord {
    /// Alternative 1: it ends in characters that may be lower case.
    lower_end: Option<usize>,
    /// Alternative 2, where 1 fails: the run of characters that may be upper case.
    upper_end: usize,
}

impl CasedWord {
    #[inline(always)]
    fn at(text: &[u8], at: usize) -> Self {
        let mut end = at;
        // The greedy run of upper case gives back characters until one of them may be lower case as well.
        let mut given_back = None;
        while let Some((class, len)) = class_at(text, end) {
            if class & (UPPER | OTHER | MARK) == 0 {
                if class & LOWER != 0 {
                    let lower_end = Some(run(text, end + len, LOWER | OTHER | MARK));
                    return Self {
                        lower_end,
                        upper_end: end,
                    };
                }
                break;
            }
            end += len;
            if class & (OTHER | MARK) != 0 {
                given_back = Some(end);
            }
        }
        Self {
            lower_end: given_back,
            upper_end: end,
        }
    }

    #[inline(always)]
    fn end(&self) -> usize {
        self.lower_end.unwrap_or(self.upper_end)
    }
}

/// A run of white space.
struct Spaces {
    /// After its last carriage return or line feed.
    newline_end: Option<usize>,
    /// Its last character.
    last: usize,
    end: usize,
    start: usize,
}

impl Spaces {
    #[inline(always)]
    fn at(text: &[u8], start: usize) -> Self {
        let (mut end, mut last, mut newline_end) = (start, start, None);
        while let Some((class, len)) = class_at(text, end) {
            if class & SPACE == 0 {
                break;
            }
            last = end;
            end += len;
            if is_newline(text[last]) {
                newline_end = Some(end);
            }
        }
        Self {
            newline_end,
            last,
            end,
            start,
        }
    }

    /// `\s+(?!\S)|\s+`: a word keeps the last white space before it, unless there is only that one.
    #[inline(always)]
    fn before_word(&self, text: &[u8]) -> usize {
        if self.end == text.len() || self.last == self.start {
            self.end
        } else {
            self.last
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(pattern: Pattern, text: &str) -> Vec<&str> {
        let mut at = 0;
        let mut pieces = Vec::new();
        while at < text.len() {
            let end = pattern.end_of_piece(text.as_bytes(), at);
            pieces.push(&text[at..end]);
            at = end;
        }
        pieces
    }

    #[test]
    fn words_of_o200k_end_where_lower_case_ends() {
        assert_eq!(pieces(Pattern::O200k, "HTTPServer don'T"), ["HTTPServer", " don'T"]);
        assert_eq!(pieces(Pattern::O200k, "fooBar.baz()"), ["foo", "Bar", ".baz", "()"]);
        assert_eq!(pieces(Pattern::O200k, "it'ſ"), ["it'ſ"]);
        assert_eq!(pieces(Pattern::O200k, "中AB"), ["中", "AB"]);
        assert_eq!(pieces(Pattern::O200k, "\u{301}AB"), ["\u{301}", "AB"]);
    }

    #[test]
    fn white_space_leaves_one_for_the_word() {
        assert_eq!(
            pieces(Pattern::O200k, "a   b \n\n  c  "),
            ["a", "  ", " b", " \n\n", " ", " c", "  "]
        );
        assert_eq!(pieces(Pattern::Cl100k, "a\n  "), ["a", "\n  "]);
        assert_eq!(pieces(Pattern::O200k, "a\n  "), ["a", "\n", "  "]);
        assert_eq!(pieces(Pattern::Gpt2, "a\n  b"), ["a", "\n ", " b"]);
    }

    #[test]
    fn numbers_come_in_threes_but_not_in_the_oldest_pattern() {
        assert_eq!(pieces(Pattern::Cl100k, "x12345"), ["x", "123", "45"]);
        assert_eq!(pieces(Pattern::Gpt2, "x 12345"), ["x", " 12345"]);
    }
}
