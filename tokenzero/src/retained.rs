//! The parts of a text that a projection may show, with their places: all of a text that is small, otherwise head, tail
//! and notable places.

use std::borrow::Cow;
use std::ops::Range;

/// A contiguous part of a text.
#[derive(Clone, Debug)]
pub(crate) struct Region<'a> {
    /// Offset of its first byte in the text.
    pub start: u64,
    /// Number of its first line.
    pub first_line: u64,
    /// Whether its first byte starts that line.
    pub starts_line: bool,
    pub bytes: Cow<'a, [u8]>,
}

/// What is known of a text: exact totals, and the regions in order, without overlap.
#[derive(Clone, Debug)]
pub(crate) struct Retained<'a> {
    pub bytes: u64,
    pub lines: u64,
    pub regions: Vec<Region<'a>>,
}

impl<'a> Retained<'a> {
    /// Takes the whole text.
    pub(crate) fn whole(text: &'a [u8]) -> Self {
        Self {
            bytes: text.len() as u64,
            lines: count_lines(text),
            regions: vec![Region {
                start: 0,
                first_line: 1,
                starts_line: true,
                bytes: Cow::Borrowed(text),
            }],
        }
    }
}

/// Number of lines: a last line without a line feed counts.
pub(crate) fn count_lines(text: &[u8]) -> u64 {
    let ends = memchr::memchr_iter(b'\n', text).count() as u64;
    ends + u64::from(text.last().is_some_and(|last| *last != b'\n'))
}

/// The smallest part that is shown or cut: a line, or a piece of a long line.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// Its bytes in the text.
    pub bytes: Range<u64>,
    /// Its line.
    pub line: u64,
    /// Whether it starts its line.
    pub starts_line: bool,
    /// Whether it ends its line (or the text).
    pub ends_line: bool,
    /// Its region; none for bytes that were not retained.
    pub region: Option<usize>,
}

/// The units of a text in order, without a gap: what was not retained is one unit a hole.
pub(crate) struct Units<'a> {
    pub retained: &'a Retained<'a>,
    pub units: Vec<Unit>,
}

impl<'a> Units<'a> {
    /// Cuts what was retained into units of at most `longest` bytes (at least 4).
    pub(crate) fn new(retained: &'a Retained<'a>, longest: usize) -> Self {
        let mut units = Vec::new();
        let (mut at, mut line) = (0, 1);
        for (index, region) in retained.regions.iter().enumerate() {
            if region.start > at {
                units.push(hole(at..region.start, line));
            }
            line = region.first_line;
            let bytes = &region.bytes[..];
            let mut start = 0;
            while start < bytes.len() {
                let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |found| start + found + 1);
                let ended = bytes[end - 1] == b'\n' || region.start + end as u64 == retained.bytes;
                let mut from = start;
                while from < end {
                    let to = if end - from <= longest { end } else { boundary(bytes, from, from + longest) };
                    // Bytes that are no text may have no boundary.
                    let to = if to == from { end.min(from + longest) } else { to };
                    units.push(Unit {
                        bytes: region.start + from as u64..region.start + to as u64,
                        line,
                        starts_line: from == start && (start > 0 || region.starts_line),
                        ends_line: to == end && ended,
                        region: Some(index),
                    });
                    from = to;
                }
                line += u64::from(bytes[end - 1] == b'\n');
                start = end;
            }
            at = region.start + bytes.len() as u64;
        }
        if at < retained.bytes {
            units.push(hole(at..retained.bytes, line));
        }
        for index in 0..units.len() {
            if units[index].region.is_none() {
                units[index].starts_line = index == 0 || units[index - 1].ends_line;
                units[index].ends_line = units.get(index + 1).is_none_or(|next| next.starts_line);
            }
        }
        Self { retained, units }
    }

    /// Returns the number of the last line that a unit touches.
    pub(crate) fn last_line(&self, unit: usize) -> u64 {
        if self.units[unit].region.is_some() {
            return self.units[unit].line;
        }
        match self.units.get(unit + 1) {
            Some(next) if next.starts_line => next.line - 1,
            Some(next) => next.line,
            None => self.retained.lines,
        }
    }

    /// Returns a unit's bytes; nothing for a hole.
    pub(crate) fn bytes(&self, unit: usize) -> &[u8] {
        self.slice(&self.units[unit], &self.units[unit].bytes)
    }

    /// Returns the bytes of a part of a unit.
    pub(crate) fn slice(&self, unit: &Unit, part: &Range<u64>) -> &[u8] {
        let Some(region) = unit.region.and_then(|index| self.retained.regions.get(index)) else {
            return &[];
        };
        let (start, end) = (part.start.saturating_sub(region.start), part.end.saturating_sub(region.start));
        region.bytes.get(start as usize..end as usize).unwrap_or(&[])
    }

    /// Returns the whole line that starts at this unit, or what is left of it.
    pub(crate) fn line_from(&self, unit: usize) -> &[u8] {
        let first = &self.units[unit];
        let mut end = unit;
        while !self.units[end].ends_line && self.units.get(end + 1).is_some_and(|next| next.line == first.line) {
            end += 1;
        }
        self.slice(first, &(first.bytes.start..self.units[end].bytes.end))
    }
}

fn hole(bytes: Range<u64>, line: u64) -> Unit {
    Unit {
        bytes,
        line,
        starts_line: true,
        ends_line: true,
        region: None,
    }
}

/// Returns the last place at or before `at`, down to `from`, that does not part a UTF-8 character.
pub(crate) fn boundary(bytes: &[u8], from: usize, at: usize) -> usize {
    let mut place = at.min(bytes.len());
    while place > from && place < bytes.len() && bytes[place] & 0xc0 == 0x80 {
        place -= 1;
    }
    place
}
