//! Listings: one path, entry or match a line. The first entry of each group (directory header, file of matches) matters
//! most, because it tells what there is.

use super::{line_end, line_starts};
use crate::retained::Units;
use crate::select::Wishes;

/// Wishes for the first line of each group.
pub(super) fn wishes(units: &Units<'_>) -> Wishes {
    let mut ranges = Vec::new();
    let mut group: &[u8] = &[];
    for start in line_starts(units) {
        let line = units.line_from(start);
        let this = group_of(line);
        if this != group {
            group = this;
            ranges.push(start..line_end(units, start));
        }
    }
    Wishes {
        ranges,
        share: 50,
        tail: 25,
    }
}

/// The part of an entry that its group has in common: up to the first colon, else the first directory of a path.
fn group_of(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_end();
    if let Some(colon) = memchr::memchr(b':', line) {
        return &line[..colon];
    }
    let entry = line.strip_prefix(b"./").unwrap_or(line);
    match memchr::memchr(b'/', entry) {
        Some(slash) => &entry[..slash],
        None => &[],
    }
}
