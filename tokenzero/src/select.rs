//! Chooses units of a text under a budget: first what matters most, then head and tail until the budget is full.
//!
//! Costs of units are counted one by one and added up, which is nearly but not quite what the whole costs; what was
//! chosen is therefore written out and counted exactly, and the aim corrected until it fits.

use std::cell::Cell;

use crate::excerpt::{Choice, Excerpt, write};
use crate::mark::totals;
use crate::measure::Measure;
use crate::retained::{Units, boundary};

/// Share of the budget that the first line and marks may take, in hundredths, when something is chosen in the middle of a gap.
const MARKS_SHARE: u64 = 12;

/// How often the aim is corrected.
const ATTEMPTS: usize = 10;
/// Runs of units that are added one after the other at the end.
const ADDED: usize = 24;

/// What matters in a text, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    /// Ranges of units, the most important first.
    pub ranges: Vec<std::ops::Range<usize>>,
    /// Share of the budget that they may take, in hundredths.
    pub share: u64,
    /// Share of the tail in what head and tail get, in hundredths.
    pub tail: u64,
}

/// Chooses under a budget.
pub(crate) struct Selector<'a> {
    units: &'a Units<'a>,
    folded: &'a [bool],
    measure: &'a Measure,
    costs: Vec<Cell<u32>>,
    /// Upper bound of one mark's tokens.
    mark: u64,
}

const UNKNOWN: u32 = u32::MAX;

impl<'a> Selector<'a> {
    pub(crate) fn new(units: &'a Units<'a>, folded: &'a [bool], measure: &'a Measure) -> Self {
        let widest = |form: String| measure.count(&form);
        let (lines, bytes) = (units.retained.lines, units.retained.bytes);
        let widest = widest(format!("[cut lines {lines}-{lines}: repeats]\n"))
            .max(widest(format!("[cut bytes {bytes}-{bytes}]")));
        Self {
            units,
            folded,
            measure,
            costs: vec![Cell::new(UNKNOWN); units.units.len()],
            mark: widest,
        }
    }

    /// Returns the best excerpt of at most `budget` tokens, and what it costs; none if not even the marks fit.
    pub(crate) fn choose(&self, wishes: &Wishes, budget: u64) -> Option<(Excerpt, u64)> {
        // Aims that were found to fit, and not to.
        let (mut low, mut high) = (0, budget.saturating_mul(200));
        let mut aim = budget;
        let mut best: Option<(Choice, Excerpt, u64)> = None;
        for _ in 0..ATTEMPTS {
            let choice = self.pick(wishes, aim, budget);
            let (excerpt, cost) = self.write(&choice);
            if cost <= budget {
                low = aim;
                // Parts that cost much one by one may cost little together: a run of empty lines is a single token.
                let scaled = u128::from(aim) * u128::from(budget) / u128::from(cost.max(1));
                aim = u64::try_from(scaled)
                    .unwrap_or(u64::MAX)
                    .max(aim.saturating_add(budget - cost));
                let full = cost * 100 >= budget * 95;
                if best.as_ref().is_none_or(|(_, _, most)| cost > *most) {
                    best = Some((choice, excerpt, cost));
                }
                if full {
                    break;
                }
            } else {
                high = aim;
                let over = cost - budget;
                aim = aim.saturating_sub(over + over / 8 + 1);
            }
            if aim <= low || aim >= high {
                aim = low + (high - low) / 2;
            }
            if aim == low {
                break;
            }
        }
        let best = best.or_else(|| {
            let choice = self.nothing();
            let (excerpt, cost) = self.write(&choice);
            (cost <= budget).then_some((choice, excerpt, cost))
        });
        best.map(|(mut choice, excerpt, cost)| self.fill(&mut choice, excerpt, cost, budget))
    }

    /// Tokens of the smallest excerpt.
    pub(crate) fn least(&self) -> u64 {
        self.write(&self.nothing()).1
    }

    fn nothing(&self) -> Choice {
        Choice {
            kept: vec![false; self.units.units.len()],
            part: None,
        }
    }

    fn write(&self, choice: &Choice) -> (Excerpt, u64) {
        let excerpt = write(self.units, choice, self.folded);
        let cost = self.measure.count(&excerpt.text);
        (excerpt, cost)
    }

    fn cost(&self, unit: usize) -> u64 {
        let known = self.costs[unit].get();
        if known != UNKNOWN {
            return u64::from(known);
        }
        let cost = self.measure.count(&String::from_utf8_lossy(self.units.bytes(unit)));
        self.costs[unit].set(u32::try_from(cost).unwrap_or(UNKNOWN - 1));
        cost
    }

    fn pick(&self, wishes: &Wishes, aim: u64, budget: u64) -> Choice {
        let header = self
            .measure
            .count(&totals(self.units.retained.lines, self.units.retained.bytes));
        let mut pick = Pick {
            of: self,
            kept: vec![false; self.units.units.len()],
            used: header + self.mark,
            gaps: 1,
            aim: 0,
            most_gaps: ((budget * MARKS_SHARE / 100).saturating_sub(header) / self.mark.max(1)).max(2),
        };
        pick.aim = aim * wishes.share / 100;
        for range in &wishes.ranges {
            for unit in range.clone() {
                if !pick.add(unit) {
                    break;
                }
            }
        }
        pick.aim = aim;
        pick.head_and_tail(wishes.tail, true);
        if pick.used * 20 < aim * 19 {
            pick.head_and_tail(wishes.tail, false);
        }
        self.close_small_gaps(&mut pick.kept);
        Choice {
            kept: pick.kept,
            part: None,
        }
    }

    /// Keeps what costs no more than the mark that would stand in its place: a few empty lines between others.
    fn close_small_gaps(&self, kept: &mut [bool]) {
        // What is longer than this costs more: few tokens of text have more than eight bytes.
        let most = self.mark * 8;
        let units = &self.units.units;
        let mut from = 0;
        while from < kept.len() {
            let to = (from..kept.len()).find(|&unit| kept[unit]).unwrap_or(kept.len());
            let gap = from..to;
            from = to + 1;
            let (Some(first), Some(last)) = (units.get(gap.start), units[..gap.end].last()) else {
                continue;
            };
            let is_known = gap.clone().all(|unit| units[unit].region.is_some());
            if gap.is_empty() || !is_known || last.bytes.end - first.bytes.start > most {
                continue;
            }
            let bytes: Vec<u8> = gap.clone().flat_map(|unit| self.units.bytes(unit)).copied().collect();
            if self.measure.count(&String::from_utf8_lossy(&bytes)) <= self.mark {
                kept[gap].fill(true);
            }
        }
    }

    /// Shows more of the first gaps, to the byte, while the budget allows. Repeats only where nothing else is left.
    fn fill(&self, choice: &mut Choice, excerpt: Excerpt, cost: u64, budget: u64) -> (Excerpt, u64) {
        let mut best = (excerpt, cost);
        let (mut from, mut repeats) = (0, false);
        for _ in 0..ADDED {
            if best.1 * 100 >= budget * 98 {
                break;
            }
            let Some(unit) = self.first_of_gap(choice, repeats, from) else {
                if repeats {
                    break;
                }
                (from, repeats) = (0, true);
                continue;
            };
            if let Some((excerpt, cost)) = self.longest_run(choice, unit, repeats, budget) {
                best = (excerpt, cost);
                continue;
            }
            match self.longest_part(choice, unit, budget) {
                Some((trial, excerpt, cost)) if cost > best.1 => {
                    best = (excerpt, cost);
                    *choice = trial;
                    break;
                }
                _ => from = unit + 1,
            }
        }
        best
    }

    /// Whether a unit could still be kept.
    fn is_open(&self, choice: &Choice, unit: usize, repeats: bool) -> bool {
        !choice.kept[unit] && (repeats || !self.folded[unit]) && self.units.units[unit].region.is_some()
    }

    /// The first unit from one on that could be kept without another mark.
    fn first_of_gap(&self, choice: &Choice, repeats: bool, from: usize) -> Option<usize> {
        (from..self.units.units.len())
            .find(|&unit| self.is_open(choice, unit, repeats) && (unit == 0 || choice.kept[unit - 1]))
    }

    /// Keeps as many units from one on as the budget allows, counted together: a run of empty lines costs far less than
    /// its lines do. None if not even the one fits.
    fn longest_run(&self, choice: &mut Choice, unit: usize, repeats: bool, budget: u64) -> Option<(Excerpt, u64)> {
        let most = (unit..self.units.units.len())
            .take_while(|&unit| self.is_open(choice, unit, repeats))
            .count();
        let mut best = None;
        let (mut low, mut high, mut middle) = (0, most, 1);
        while low < high {
            choice.kept[unit..unit + middle].fill(true);
            let (excerpt, cost) = self.write(choice);
            choice.kept[unit..unit + middle].fill(false);
            if cost <= budget {
                best = Some((excerpt, cost));
                low = middle;
                // Most often little fits: the steps grow from there.
                middle = (middle * 2).min((low + high).div_ceil(2));
            } else {
                high = middle - 1;
                middle = (low + high).div_ceil(2);
            }
        }
        choice.kept[unit..unit + low].fill(true);
        best
    }

    /// Shows as much of a unit as the budget allows.
    fn longest_part(&self, choice: &Choice, unit: usize, budget: u64) -> Option<(Choice, Excerpt, u64)> {
        let bytes = self.units.bytes(unit);
        let (mut low, mut high) = (0, bytes.len());
        let mut best: Option<(Choice, Excerpt, u64)> = None;
        while low < high {
            let middle = (low + high).div_ceil(2);
            let at = if middle == bytes.len() {
                middle
            } else {
                boundary(bytes, 0, middle)
            };
            let mut trial = choice.clone();
            if at == bytes.len() {
                trial.kept[unit] = true;
            } else {
                trial.part = Some((unit, at as u64));
            }
            let (excerpt, cost) = self.write(&trial);
            if cost <= budget {
                if best.as_ref().is_none_or(|(_, _, most)| cost > *most) {
                    best = Some((trial, excerpt, cost));
                }
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        best
    }
}

/// A choice in the making.
struct Pick<'a> {
    of: &'a Selector<'a>,
    kept: Vec<bool>,
    used: u64,
    gaps: u64,
    aim: u64,
    most_gaps: u64,
}

impl Pick<'_> {
    /// Keeps a unit if it fits with the marks that it needs.
    fn add(&mut self, unit: usize) -> bool {
        if self.kept[unit] {
            return true;
        }
        if self.of.units.units[unit].region.is_none() {
            return false;
        }
        let before = unit == 0 || self.kept[unit - 1];
        let after = unit + 1 == self.kept.len() || self.kept[unit + 1];
        let gaps = match (before, after) {
            (false, false) => self.gaps + 1,
            (true, true) => self.gaps.saturating_sub(1),
            _ => self.gaps,
        };
        if gaps > self.gaps && gaps > self.most_gaps {
            return false;
        }
        let used = self.used + self.of.cost(unit) + gaps * self.of.mark - self.gaps * self.of.mark;
        if used > self.aim {
            return false;
        }
        (self.kept[unit], self.used, self.gaps) = (true, used, gaps);
        true
    }

    /// Adds units from both ends until neither side can go on; passes over repeats if `fold`.
    fn head_and_tail(&mut self, tail_share: u64, fold: bool) {
        let (mut head, mut tail) = (0, self.kept.len());
        let (mut head_open, mut tail_open) = (tail_share < 100, tail_share > 0);
        let (mut head_used, mut tail_used) = (0, 0);
        while (head_open || tail_open) && head < tail {
            let from_tail = tail_open && (!head_open || tail_used * (100 - tail_share) < head_used * tail_share);
            let unit = if from_tail { tail - 1 } else { head };
            let before = self.used;
            let skip = fold && self.of.folded[unit] && self.gaps < self.most_gaps;
            let added = skip || self.add(unit);
            let spent = self.used.saturating_sub(before);
            if from_tail {
                (tail, tail_used, tail_open) = (tail - usize::from(added), tail_used + spent, added);
            } else {
                (head, head_used, head_open) = (head + usize::from(added), head_used + spent, added);
            }
        }
    }
}
