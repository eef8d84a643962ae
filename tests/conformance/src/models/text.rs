//! Places in a text.

use zero_contracts::{Position, TextRange};

/// The place of a byte: its line, and its column in characters.
pub(crate) fn position(text: &str, byte: usize) -> Position {
    let before = &text[..byte];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Position {
        line: before.matches('\n').count() as u64 + 1,
        column: text[line_start..byte].chars().count() as u64 + 1,
        byte: byte as u64,
    }
}

/// The range of a match; its end names the last character, and the byte after it.
pub(crate) fn range(text: &str, start: usize, end: usize) -> TextRange {
    let last = text[start..end]
        .char_indices()
        .next_back()
        .map_or(start, |(at, _)| start + at);
    TextRange {
        start: position(text, start),
        end: Position {
            byte: end as u64,
            ..position(text, last)
        },
    }
}

/// The lines of a text without their ends.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}
