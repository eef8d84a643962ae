//! What matters in each kind of text: the wishes that the selection fills the budget with, before head and tail.

mod detect;
mod diff;
mod listing;
mod log;
mod source;

pub(crate) use detect::detect;

use zero_contracts::LineRange;
use zero_contracts::read::OutlineItem;
use zero_contracts::tokens::TextKind;

use crate::retained::Units;
use crate::select::Wishes;

/// The wishes of a text and which of its units repeat the line above them.
pub(crate) struct Plan {
    pub wishes: Wishes,
    pub folded: Vec<bool>,
}

/// Makes the plan for a kind.
pub(crate) fn plan(kind: TextKind, units: &Units<'_>, outline: &[OutlineItem], wanted: &[LineRange]) -> Plan {
    let unfolded = || vec![false; units.units.len()];
    match kind {
        TextKind::Log => {
            let folded = log::folded(units);
            Plan {
                wishes: log::wishes(units, &folded),
                folded,
            }
        }
        TextKind::Diff => Plan {
            wishes: diff::wishes(units),
            folded: unfolded(),
        },
        TextKind::Listing => Plan {
            wishes: listing::wishes(units),
            folded: unfolded(),
        },
        TextKind::Source => Plan {
            wishes: source::wishes(units, outline, wanted),
            folded: unfolded(),
        },
        TextKind::Detect | TextKind::Text | TextKind::Json => {
            let ranges = source::of_lines(units, wanted);
            Plan {
                wishes: Wishes {
                    ranges,
                    share: 80,
                    tail: 33,
                },
                folded: unfolded(),
            }
        }
    }
}

/// Returns the unit after the last one of the line that starts at `unit`.
fn line_end(units: &Units<'_>, unit: usize) -> usize {
    let mut end = unit;
    while !units.units[end].ends_line && end + 1 < units.units.len() {
        end += 1;
    }
    end + 1
}

/// Units that start a line, in order.
fn line_starts<'a>(units: &'a Units<'_>) -> impl Iterator<Item = usize> + 'a {
    (0..units.units.len()).filter(|&unit| units.units[unit].starts_line && units.units[unit].region.is_some())
}
