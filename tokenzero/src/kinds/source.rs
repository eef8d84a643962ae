//! Source code: the wanted lines, then the outline's first lines.

use std::ops::Range;

use zero_contracts::LineRange;
use zero_contracts::read::OutlineItem;

use super::{line_end, line_starts};
use crate::retained::Units;
use crate::select::Wishes;

/// Wishes for wanted lines, then for the line that begins each symbol, outer ones first.
pub(super) fn wishes(units: &Units<'_>, outline: &[OutlineItem], wanted: &[LineRange]) -> Wishes {
    let mut ranges = of_lines(units, wanted);
    let mut items: Vec<&OutlineItem> = outline.iter().collect();
    items.sort_by_key(|item| (item.symbol.matches("::").count(), item.lines.first()));
    let firsts: Vec<LineRange> = items
        .iter()
        .filter_map(|item| LineRange::new(item.lines.first(), item.lines.first()).ok())
        .collect();
    ranges.extend(of_lines(units, &firsts));
    Wishes {
        ranges,
        share: 95,
        tail: 10,
    }
}

/// The units of lines.
pub(super) fn of_lines(units: &Units<'_>, lines: &[LineRange]) -> Vec<Range<usize>> {
    if lines.is_empty() {
        return Vec::new();
    }
    let starts: Vec<(u64, usize)> = line_starts(units).map(|unit| (units.units[unit].line, unit)).collect();
    lines
        .iter()
        .filter_map(|range| {
            let first = starts.partition_point(|(line, _)| *line < range.first());
            let last = starts.partition_point(|(line, _)| *line <= range.last());
            (first < last).then(|| starts[first].1..line_end(units, starts[last - 1].1))
        })
        .collect()
}
