//! Unified diffs: what names the files, then hunk after hunk.

use std::ops::Range;

use super::line_starts;
use crate::retained::Units;
use crate::select::Wishes;

/// Wishes for each file's header with its first hunk, then for the other hunks in order.
pub(super) fn wishes(units: &Units<'_>) -> Wishes {
    let starts: Vec<usize> = line_starts(units).collect();
    let at = |line: usize| starts.get(line).copied().unwrap_or(units.units.len());
    let heads: Vec<(usize, bool)> = starts
        .iter()
        .enumerate()
        .filter_map(|(line, &start)| {
            let text = units.line_from(start);
            let file = text.starts_with(b"diff --git ") || text.starts_with(b"Index: ") || text.starts_with(b"commit ");
            (file || text.starts_with(b"@@ ")).then_some((line, file))
        })
        .collect();
    let mut first: Vec<Range<usize>> = Vec::new();
    let (mut names, mut rest) = (first.clone(), first.clone());
    let mut new_file = true;
    for (index, &(line, file)) in heads.iter().enumerate() {
        let end = at(heads.get(index + 1).map_or(starts.len(), |next| next.0));
        if file {
            names.push(at(line)..at(line + 1));
            first.push(at(line)..end);
            new_file = true;
        } else if new_file {
            first.push(at(line)..end);
            new_file = false;
        } else {
            rest.push(at(line)..end);
        }
    }
    let ranges = names.into_iter().chain(first).chain(rest).collect();
    Wishes {
        ranges,
        share: 95,
        tail: 0,
    }
}
