//! Output of tools: failures with what surrounds them, then warnings; runs of like lines are folded.

use std::collections::HashMap;
use std::ops::Range;

use super::{line_end, line_starts};
use crate::notable::{Weight, shape, weigh};
use crate::retained::Units;
use crate::select::Wishes;

/// Lines of one shape in a row, from which on all but the first are folded.
const RUN: usize = 4;
/// Failures whose surroundings are wished for.
const MOST: usize = 400;
/// Lines after a failure that belong to it, unless an empty line comes first.
const AFTER: usize = 6;

/// Marks the units that repeat the line above their run, but for numbers.
pub(super) fn folded(units: &Units<'_>) -> Vec<bool> {
    let mut folded = vec![false; units.units.len()];
    let mut run: Vec<Range<usize>> = Vec::new();
    let mut run_shape = None;
    let mut close = |run: &mut Vec<Range<usize>>| {
        if run.len() >= RUN {
            for unit in run[1..].iter().cloned().flatten() {
                folded[unit] = true;
            }
        }
        run.clear();
    };
    let mut expected = 0;
    for start in line_starts(units) {
        let line = units.line_from(start);
        // A failure is never folded away.
        let shape = (weigh(line) < Weight::Result).then(|| shape(line));
        if start != expected || shape.is_none() || shape != run_shape {
            close(&mut run);
        }
        run_shape = shape;
        expected = line_end(units, start);
        run.push(start..expected);
    }
    close(&mut run);
    folded
}

/// Wishes for failures (each shape once before any is repeated), their surroundings, then warnings.
pub(super) fn wishes(units: &Units<'_>, folded: &[bool]) -> Wishes {
    let starts: Vec<usize> = line_starts(units).collect();
    let range = |line: usize| starts[line]..line_end(units, starts[line]);
    let mut seen: HashMap<u64, usize> = HashMap::new();
    let (mut first, mut results, mut again, mut warnings) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut last_failure = None;
    for (line, &start) in starts.iter().enumerate() {
        if folded[start] {
            continue;
        }
        let text = units.line_from(start);
        match weigh(text) {
            weight @ (Weight::Failure | Weight::Result) => {
                let count = seen.entry(shape(text)).or_default();
                *count += 1;
                if *count == 1 && weight == Weight::Result && results.len() < MOST {
                    results.push(line);
                } else if *count == 1 && first.len() < MOST {
                    first.push(line);
                } else if *count > 1 && again.len() < MOST {
                    again.push(line);
                }
                last_failure = Some(line);
            }
            Weight::Warning if warnings.len() < MOST => warnings.push(line),
            _ => {}
        }
    }
    let mut ranges = Vec::new();
    // The very end tells how it went, and the last failure is often the one that ended it.
    ranges.extend(starts.len().checked_sub(1).map(range));
    // What a panic says stands on its second line.
    let message = |line: usize| {
        let text = units.line_from(starts[line]).trim_ascii_end();
        (text.ends_with(b":") && line + 1 < starts.len()).then(|| range(line + 1))
    };
    // Why something failed, before what did.
    for &line in first.iter().chain(&last_failure).chain(&results) {
        ranges.push(range(line));
        ranges.extend(message(line));
    }
    for &line in first.iter().chain(&results) {
        ranges.extend(surroundings(units, &starts, line));
    }
    for &line in &again {
        ranges.push(range(line));
        ranges.extend(message(line));
    }
    for &line in again.iter().take(MOST / 4) {
        ranges.extend(surroundings(units, &starts, line));
    }
    ranges.extend(warnings.into_iter().map(range));
    Wishes {
        ranges,
        share: 75,
        tail: 60,
    }
}

/// The lines after a failure up to an empty one, and the line before it.
fn surroundings(units: &Units<'_>, starts: &[usize], line: usize) -> Vec<Range<usize>> {
    let is_empty = |line: usize| units.line_from(starts[line]).trim_ascii().is_empty();
    let end = (line + 1..starts.len().min(line + 1 + AFTER))
        .find(|&next| is_empty(next))
        .unwrap_or(starts.len().min(line + 1 + AFTER));
    let mut ranges: Vec<Range<usize>> = (line + 1..end)
        .map(|next| starts[next]..line_end(units, starts[next]))
        .collect();
    if let Some(before) = line.checked_sub(1)
        && !is_empty(before)
    {
        ranges.push(starts[before]..line_end(units, starts[before]));
    }
    ranges
}
