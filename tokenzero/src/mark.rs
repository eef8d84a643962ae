//! The words that stand where something was cut.
//!
//! A mark names the selector that brings the part back from the projection's handle: `lines A-B` (1-based, inclusive) or
//! `bytes A-B` (0-based, half-open, of the original).

use std::ops::Range;

use zero_contracts::tokens::Selector;
use zero_contracts::{ByteRange, LineRange};

/// What a cut left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// Whole lines.
    Lines { first: u64, last: u64 },
    /// Whole lines that are like the line above them.
    Folded { first: u64, last: u64 },
    /// Bytes that are not whole lines; whether they end with a line's end.
    Bytes { ends_line: bool },
}

/// One cut of a text: the bytes left out and what stands in their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub bytes: Range<u64>,
    pub gap: Gap,
}

impl Mark {
    /// Returns what stands in the text.
    pub(crate) fn text(&self) -> String {
        match self.gap {
            Gap::Lines { first, last } if first == last => format!("[cut line {first}]\n"),
            Gap::Lines { first, last } => format!("[cut lines {first}-{last}]\n"),
            Gap::Folded { first, last } if first == last => format!("[cut line {first}: repeats]\n"),
            Gap::Folded { first, last } => format!("[cut lines {first}-{last}: repeats]\n"),
            Gap::Bytes { ends_line } => {
                let end = if ends_line { "\n" } else { "" };
                format!("[cut bytes {}-{}]{end}", self.bytes.start, self.bytes.end)
            }
        }
    }

    /// Returns the selector it names; none would mean an empty cut.
    pub(crate) fn selector(&self) -> Option<Selector> {
        match self.gap {
            Gap::Lines { first, last } | Gap::Folded { first, last } => {
                LineRange::new(first, last).ok().map(Selector::Lines)
            }
            Gap::Bytes { .. } => ByteRange::new(self.bytes.start, self.bytes.end)
                .ok()
                .map(Selector::Bytes),
        }
    }
}

/// The first line of a text that was cut: its exact totals.
pub(crate) fn totals(lines: u64, bytes: u64) -> String {
    let s = if lines == 1 { "" } else { "s" };
    format!("[{lines} line{s}, {bytes} bytes in all]\n")
}
