//! Counts and encodes text exactly as the reference tokenizer does.
//!
//! A text is cut into pieces (module `split`); a piece that is a token costs one lookup, any other is merged
//! (module `merge`). Source code and logs repeat their words, so the costs of short pieces are kept in a small
//! table and most pieces need neither. That table is the only state, and it never changes a result.

use std::sync::Mutex;

use crate::encoding::Encoding;
use crate::merge::{Scratch, merge};
use crate::split::Pattern;
use crate::vocabulary::Vocabulary;

/// Entries of the table of short pieces; a power of two. 256 KiB in all.
const ENTRIES: usize = 1 << 14;
/// Greatest length of a short piece in bytes.
const SHORT: usize = 15;
/// Texts below this length in bytes are counted without the table: touching it would cost more than it saves.
const WORTH_A_TABLE: usize = 256;
/// No token of any vocabulary is longer than so many bytes.
pub(crate) const LONGEST_TOKEN: u64 = 128;

/// Counts tokens in one encoding. Cheap to make: the vocabulary is read-only data of the program, read in as it is
/// touched, so the first count costs some page faults and nothing is built. May be used from several threads; each count
/// that runs at the same time as another has a table of 256 KiB, which is kept for later counts.
pub struct Counter {
    encoding: Encoding,
    tables: Mutex<Vec<Table>>,
}

/// Costs of short pieces: the bytes, and in the highest byte length and number of tokens.
struct Table {
    entries: Box<[u128]>,
    scratch: Scratch,
}

impl Table {
    fn new() -> Self {
        Self {
            entries: vec![0; ENTRIES].into_boxed_slice(),
            scratch: Scratch::default(),
        }
    }
}

impl Counter {
    /// Makes a counter.
    pub fn new(encoding: Encoding) -> Self {
        Self {
            encoding,
            tables: Mutex::default(),
        }
    }

    /// Returns its encoding.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Counts the tokens of a text, as the reference's `encode_ordinary` does: the names of special tokens, such as
    /// `<|endoftext|>`, are plain text. Time is linear in the length, whatever the text.
    pub fn count(&self, text: &str) -> u64 {
        self.count_within(text, u64::MAX).unwrap_or(u64::MAX)
    }

    /// Counts the tokens of bytes that need not be UTF-8: each maximal ill-formed sequence counts as U+FFFD, the
    /// replacement character, as [`String::from_utf8_lossy`] has it.
    pub fn count_bytes(&self, bytes: &[u8]) -> u64 {
        self.count(&String::from_utf8_lossy(bytes))
    }

    /// Counts the tokens of a text if they are at most `limit`, and stops soon after it is certain that there are more: the
    /// work grows with the limit, not with the text, also where a text is one piece.
    pub fn count_within(&self, text: &str, limit: u64) -> Option<u64> {
        // A token is at least one byte.
        if text.is_empty() {
            return Some(0);
        }
        if costs_more(text.len(), limit) {
            return None;
        }
        let mut table = (text.len() >= WORTH_A_TABLE).then(|| self.take());
        let vocabulary = self.encoding.vocabulary();
        let bytes = text.as_bytes();
        let count = match self.encoding.pattern() {
            // One copy of the loop for each pattern, so that the splitter is part of it.
            Pattern::O200k => count(Pattern::O200k, vocabulary, bytes, limit, table.as_mut()),
            Pattern::Cl100k => count(Pattern::Cl100k, vocabulary, bytes, limit, table.as_mut()),
            Pattern::Gpt2 => count(Pattern::Gpt2, vocabulary, bytes, limit, table.as_mut()),
        };
        if let Some(table) = table {
            self.give_back(table);
        }
        (count <= limit).then_some(count)
    }

    /// Encodes a text to ranks, as the reference's `encode_ordinary` does.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let (vocabulary, pattern) = (self.encoding.vocabulary(), self.encoding.pattern());
        let bytes = text.as_bytes();
        let mut ranks = Vec::new();
        let mut scratch = Scratch::default();
        let mut at = 0;
        while at < bytes.len() {
            let end = pattern.end_of_piece(bytes, at);
            let piece = &bytes[at..end];
            match vocabulary.rank(piece) {
                Some(rank) => ranks.push(rank),
                // Every token of a merge has a rank: the single bytes have one, and joins happen only where there is one.
                None => merge(vocabulary, piece, &mut scratch, |token| {
                    ranks.extend(vocabulary.rank(token))
                }),
            }
            at = end;
        }
        ranks
    }

    /// Returns the bytes of a token; none for a rank that the encoding does not have.
    pub fn token_bytes(&self, rank: u32) -> Option<&'static [u8]> {
        let vocabulary = self.encoding.vocabulary();
        if rank >= vocabulary.ranks() {
            return None;
        }
        Some(vocabulary.token(rank)).filter(|bytes| !bytes.is_empty())
    }

    fn take(&self) -> Table {
        let kept = self.tables.lock().ok().and_then(|mut tables| tables.pop());
        kept.unwrap_or_else(Table::new)
    }

    fn give_back(&self, table: Table) {
        // A poisoned lock only means that the table is not kept.
        if let Ok(mut tables) = self.tables.lock() {
            tables.push(table);
        }
    }
}

impl std::fmt::Debug for Counter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Counter").field(&self.encoding).finish()
    }
}

/// Whether so many bytes are more than `tokens` tokens, however they are merged.
fn costs_more(bytes: usize, tokens: u64) -> bool {
    bytes as u64 > tokens.saturating_mul(LONGEST_TOKEN)
}

#[inline(always)]
fn count(pattern: Pattern, vocabulary: &Vocabulary, text: &[u8], limit: u64, table: Option<&mut Table>) -> u64 {
    let mut at = 0;
    let mut tokens = 0;
    match table {
        Some(Table { entries, scratch }) => {
            while at < text.len() && tokens <= limit {
                let end = pattern.end_of_piece(text, at);
                if costs_more(end - at, limit - tokens) {
                    return limit.saturating_add(1);
                }
                tokens += known_cost(vocabulary, text, at, end, entries, scratch);
                at = end;
            }
        }
        None => {
            let mut scratch = Scratch::default();
            while at < text.len() && tokens <= limit {
                let end = pattern.end_of_piece(text, at);
                if costs_more(end - at, limit - tokens) {
                    return limit.saturating_add(1);
                }
                tokens += cost(vocabulary, &text[at..end], &mut scratch);
                at = end;
            }
        }
    }
    tokens
}

#[inline(always)]
fn known_cost(
    vocabulary: &Vocabulary,
    text: &[u8],
    at: usize,
    end: usize,
    entries: &mut [u128],
    scratch: &mut Scratch,
) -> u64 {
    let length = end - at;
    if length > SHORT {
        return cost(vocabulary, &text[at..end], scratch);
    }
    let key = match text.get(at..at + 16).and_then(|bytes| bytes.first_chunk::<16>()) {
        Some(bytes) => u128::from_le_bytes(*bytes) & ((1 << (8 * length)) - 1),
        None => {
            let mut buffer = [0; 16];
            buffer[..length].copy_from_slice(&text[at..end]);
            u128::from_le_bytes(buffer)
        }
    };
    // The highest byte: length above, cost below. Neither is zero, nor more than 15.
    let key = key | (length as u128) << 124;
    let folded = (key as u64 ^ ((key >> 64) as u64).rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let entry = &mut entries[(folded >> 32) as usize & (ENTRIES - 1)];
    const COST: u128 = 0xf << 120;
    if *entry & !COST == key {
        return (*entry >> 120) as u64 & 0xf;
    }
    let tokens = cost(vocabulary, &text[at..end], scratch);
    *entry = key | u128::from(tokens) << 120;
    tokens
}

#[inline(never)]
fn cost(vocabulary: &Vocabulary, piece: &[u8], scratch: &mut Scratch) -> u64 {
    if vocabulary.rank(piece).is_some() {
        return 1;
    }
    let mut tokens = 0;
    merge(vocabulary, piece, scratch, |_| tokens += 1);
    tokens
}
