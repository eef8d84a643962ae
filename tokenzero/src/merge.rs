//! Byte-pair merging of one piece that is no token itself.
//!
//! The rule is the reference's: of all neighbours whose joined bytes are a token, those of the lowest rank are joined
//! first, the leftmost first among equals, until there are none. Short pieces are searched anew for each merge, as in the
//! reference. Long ones (a megabyte of one character is one piece) keep their candidates in buckets by rank: the work
//! grows with the length, times the logarithm of the number of different ranks at most, which the vocabulary bounds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::vocabulary::Vocabulary;

const NONE: u32 = u32::MAX;
/// Pieces from this length on are long.
const LONG: usize = 100;

/// Memory that is used again from piece to piece.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Start of each part, and the rank of its join with the next one.
    parts: Vec<(u32, u32)>,
}

/// Calls `emit` with the bytes of each token of the piece, in order; the piece holds at least two bytes.
pub(crate) fn merge<'a>(vocabulary: &Vocabulary, piece: &'a [u8], scratch: &mut Scratch, emit: impl FnMut(&'a [u8])) {
    if piece.len() < LONG {
        merge_short(vocabulary, piece, &mut scratch.parts, emit);
    } else {
        merge_long(vocabulary, piece, emit);
    }
}

fn joined(vocabulary: &Vocabulary, piece: &[u8], start: usize, end: usize) -> u32 {
    vocabulary.rank(&piece[start..end]).unwrap_or(NONE)
}

fn merge_short<'a>(
    vocabulary: &Vocabulary,
    piece: &'a [u8],
    parts: &mut Vec<(u32, u32)>,
    mut emit: impl FnMut(&'a [u8]),
) {
    parts.clear();
    parts.extend((0..piece.len()).map(|start| {
        let rank = if start + 2 <= piece.len() {
            joined(vocabulary, piece, start, start + 2)
        } else {
            NONE
        };
        (start as u32, rank)
    }));
    // The end of the last part.
    parts.push((piece.len() as u32, NONE));
    while let Some((at, lowest)) = lowest(parts)
        && lowest != NONE
    {
        parts.remove(at + 1);
        for at in [Some(at), at.checked_sub(1)].into_iter().flatten() {
            let rank = match parts.get(at + 2) {
                Some(&(end, _)) => joined(vocabulary, piece, parts[at].0 as usize, end as usize),
                None => NONE,
            };
            parts[at].1 = rank;
        }
    }
    for pair in parts.windows(2) {
        emit(&piece[pair[0].0 as usize..pair[1].0 as usize]);
    }
}

fn lowest(parts: &[(u32, u32)]) -> Option<(usize, u32)> {
    let mut best = None;
    for (at, &(_, rank)) in parts.iter().enumerate() {
        if best.is_none_or(|(_, lowest)| rank < lowest) {
            best = Some((at, rank));
        }
    }
    best
}

/// Candidate merges by rank; within a rank by their place.
#[derive(Default)]
struct Buckets {
    ranks: BinaryHeap<Reverse<u32>>,
    starts: HashMap<u32, Vec<u32>>,
}

impl Buckets {
    fn push(&mut self, rank: u32, start: usize) {
        let starts = self.starts.entry(rank).or_default();
        if starts.is_empty() {
            self.ranks.push(Reverse(rank));
        }
        starts.push(start as u32);
    }

    /// Takes all candidates of the lowest rank, the leftmost first.
    fn pop(&mut self) -> Option<(u32, Vec<u32>)> {
        let Reverse(rank) = self.ranks.pop()?;
        let mut starts = self.starts.remove(&rank).unwrap_or_default();
        // They come in a few ascending runs, which this sort joins in linear time.
        starts.sort();
        Some((rank, starts))
    }
}

fn merge_long<'a>(vocabulary: &Vocabulary, piece: &'a [u8], mut emit: impl FnMut(&'a [u8])) {
    let length = piece.len();
    // For each start of a part: the start of the next and the previous one, and the rank of its join with the next.
    let mut next: Vec<usize> = (1..=length).collect();
    let mut previous: Vec<usize> = (0..length).map(|start| start.wrapping_sub(1)).collect();
    let mut ranks = vec![NONE; length];
    let mut buckets = Buckets::default();
    for (start, known) in ranks.iter_mut().enumerate().take(length - 1) {
        *known = joined(vocabulary, piece, start, start + 2);
        if *known != NONE {
            buckets.push(*known, start);
        }
    }
    while let Some((rank, starts)) = buckets.pop() {
        for (done, &start) in starts.iter().enumerate() {
            let start = start as usize;
            if ranks[start] != rank {
                continue; // One of its two parts was merged meanwhile.
            }
            let right = next[start];
            let after = next[right];
            next[start] = after;
            ranks[right] = NONE;
            if after < length {
                previous[after] = start;
            }
            let mut undercut = false;
            for start in [previous[start], start] {
                if start == usize::MAX {
                    continue;
                }
                let end = next[next[start].min(length - 1)];
                ranks[start] = if next[start] < length {
                    joined(vocabulary, piece, start, end)
                } else {
                    NONE
                };
                if ranks[start] != NONE {
                    buckets.push(ranks[start], start);
                    undercut |= ranks[start] <= rank;
                }
            }
            if undercut {
                // A trained vocabulary gives every token a higher rank than its parts, so this does not happen; the rule
                // is kept all the same.
                for &start in &starts[done + 1..] {
                    buckets.push(rank, start as usize);
                }
                break;
            }
        }
    }
    let mut start = 0;
    while start < length {
        emit(&piece[start..next[start]]);
        start = next[start];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::{CL100K, O200K, R50K};
    use proptest::prelude::*;

    fn both(vocabulary: &Vocabulary, piece: &[u8]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let (mut short, mut long) = (Vec::new(), Vec::new());
        merge_short(vocabulary, piece, &mut Vec::new(), |token| short.push(token.to_vec()));
        merge_long(vocabulary, piece, |token| long.push(token.to_vec()));
        (short, long)
    }

    proptest! {
        #[test]
        fn both_ways_of_merging_agree(piece in "[a-d ^=]{2,200}|[a-zA-Zäöé中]{2,60}") {
            for vocabulary in [&O200K, &CL100K, &R50K] {
                let (short, long) = both(vocabulary, piece.as_bytes());
                prop_assert_eq!(short, long);
            }
        }

        #[test]
        fn bytes_that_are_no_text_merge_alike(piece in proptest::collection::vec(any::<u8>(), 2..150)) {
            let (short, long) = both(&O200K, &piece);
            prop_assert_eq!(&short, &long);
            prop_assert_eq!(short.concat(), piece);
        }
    }
}
