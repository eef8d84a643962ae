//! The vocabularies: which byte strings are tokens, and their ranks.
//!
//! They are flat tables made by the build script from what the reference implementation carries, and part of the
//! program's read-only data. Nothing is loaded: a page comes into memory when it is first touched.

mod hash;

pub(crate) use hash::hash;

/// Bits of a slot that hold the rank; the rest hold a part of the hash. The build script knows the same number.
const RANK_BITS: u32 = 18;
const RANK_MASK: u32 = (1 << RANK_BITS) - 1;
const EMPTY: u32 = u32::MAX;

/// A set of tokens with their ranks.
pub(crate) struct Vocabulary {
    /// Open addressing; little-endian words. Their number is a power of two.
    slots: &'static [u8],
    /// Where each token's bytes end; little-endian words.
    ends: &'static [u8],
    bytes: &'static [u8],
    /// Ranks from here on do not belong to it.
    limit: u32,
    /// Length of its longest token.
    longest: usize,
}

macro_rules! table {
    ($name:literal, $limit:literal, $longest:literal) => {
        Vocabulary {
            slots: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".slots")),
            ends: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".ends")),
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bytes")),
            limit: $limit,
            longest: $longest,
        }
    };
}

pub(crate) static O200K: Vocabulary = table!("o200k", 199_998, 128);
pub(crate) static CL100K: Vocabulary = table!("cl100k", 100_256, 128);
pub(crate) static P50K: Vocabulary = table!("p50k", 50_281, 128);
pub(crate) static R50K: Vocabulary = table!("p50k", 50_256, 128);

#[inline(always)]
fn word(words: &'static [u8], at: usize) -> u32 {
    words
        .as_chunks::<4>()
        .0
        .get(at)
        .map_or(EMPTY, |word| u32::from_le_bytes(*word))
}

impl Vocabulary {
    /// Returns the rank of a token.
    #[inline]
    pub(crate) fn rank(&self, token: &[u8]) -> Option<u32> {
        if token.len() > self.longest {
            return None;
        }
        let hash = hash(token);
        let mask = self.slots.len() / 4 - 1;
        let tag = ((hash >> 32) as u32) << RANK_BITS;
        let mut at = hash as usize & mask;
        loop {
            let slot = word(self.slots, at);
            if slot == EMPTY {
                return None;
            }
            let rank = slot & RANK_MASK;
            if slot & !RANK_MASK == tag && self.token(rank) == token {
                return (rank < self.limit).then_some(rank);
            }
            at = (at + 1) & mask;
        }
    }

    /// Returns the bytes of a rank; none for a rank that does not exist.
    pub(crate) fn token(&self, rank: u32) -> &'static [u8] {
        let rank = rank as usize;
        let start = if rank == 0 { 0 } else { word(self.ends, rank - 1) };
        let end = word(self.ends, rank);
        self.bytes.get(start as usize..end as usize).unwrap_or(&[])
    }

    /// Number of ranks, used or not.
    pub(crate) fn ranks(&self) -> u32 {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_has_its_rank_and_every_byte_is_a_token() {
        for vocabulary in [&O200K, &CL100K, &P50K, &R50K] {
            let mut longest = 0;
            for rank in 0..vocabulary.ranks() {
                let token = vocabulary.token(rank);
                longest = longest.max(token.len());
                if !token.is_empty() {
                    assert_eq!(vocabulary.rank(token), Some(rank));
                }
            }
            assert!(longest <= vocabulary.longest, "{longest}");
            for byte in 0..=u8::MAX {
                assert!(vocabulary.rank(&[byte]).is_some());
            }
        }
    }

    #[test]
    fn the_special_token_is_no_token_and_runs_of_spaces_tell_the_two_old_ones_apart() {
        for vocabulary in [&O200K, &CL100K, &P50K, &R50K] {
            assert_eq!(vocabulary.rank(b"<|endoftext|>"), None);
        }
        assert!(P50K.rank(b"     ").is_some() && R50K.rank(b"     ").is_none());
    }
}
