//! A choice of units, written out: what is kept, with a mark in every gap.

use crate::mark::{Gap, Mark, totals};
use crate::retained::Units;

/// Which units are kept.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub kept: Vec<bool>,
    /// One unit that is not kept, and how many of its first bytes are shown all the same.
    pub part: Option<(usize, u64)>,
}

/// A text with its cuts marked.
pub(crate) struct Excerpt {
    pub text: String,
    pub marks: Vec<Mark>,
}

/// Writes a choice out. `folded` tells for each unit whether it repeats the line above its run.
pub(crate) fn write(units: &Units<'_>, choice: &Choice, folded: &[bool]) -> Excerpt {
    let mut text = totals(units.retained.lines, units.retained.bytes);
    let mut marks = Vec::new();
    let mut kept = Vec::new();
    let mut unit = 0;
    while unit < units.units.len() {
        if choice.kept[unit] {
            kept.extend_from_slice(units.bytes(unit));
            unit += 1;
            continue;
        }
        let first = &units.units[unit];
        let mut start = first.bytes.start;
        let mut starts_line = first.starts_line;
        if let Some((part, shown)) = choice.part
            && part == unit
            && shown > 0
        {
            kept.extend_from_slice(units.slice(first, &(start..start + shown)));
            start += shown;
            starts_line = false;
        }
        // Bytes that are not UTF-8 are replaced run by run; no kept run parts a character.
        text.push_str(&String::from_utf8_lossy(&kept));
        kept.clear();
        let from = unit;
        while unit < units.units.len() && !choice.kept[unit] {
            unit += 1;
        }
        let last = unit - 1;
        let ends_line = units.units[last].ends_line;
        let all_folded = folded[from..unit].iter().all(|folded| *folded);
        let gap = match (starts_line && ends_line, all_folded) {
            (true, true) => Gap::Folded {
                first: first.line,
                last: units.last_line(last),
            },
            (true, false) => Gap::Lines {
                first: first.line,
                last: units.last_line(last),
            },
            // At the very end nothing follows that would need a line of its own.
            (false, _) => Gap::Bytes {
                ends_line: ends_line && unit < units.units.len(),
            },
        };
        let mark = Mark {
            bytes: start..units.units[last].bytes.end,
            gap,
        };
        text.push_str(&mark.text());
        marks.push(mark);
    }
    text.push_str(&String::from_utf8_lossy(&kept));
    Excerpt { text, marks }
}
