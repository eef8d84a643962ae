//! The framing of journal records: where one begins and ends, and whether it is whole.
//!
//! A frame is `FZJ1`, the payload's length (u32), the frame's sequence number (u64), the first eight bytes of the
//! BLAKE3 digest of length, number and payload, then the payload; numbers are little-endian. A torn tail is what a
//! crash leaves: bytes that are no whole frame with none after them. Bytes that are no whole frame with a whole frame
//! *after* them are damage; reading goes on behind them.

use zero_contracts::Hasher;

const MAGIC: &[u8; 4] = b"FZJ1";
const HEADER: usize = 24;

/// A whole frame within a buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub sequence: u64,
    pub payload: &'a [u8],
    /// Where the next frame starts.
    pub end: usize,
}

fn check(head: &[u8], payload: &[u8]) -> [u8; 8] {
    let digest = Hasher::new().update(head).update(payload).finish();
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    first
}

/// Appends one frame to a buffer.
pub(crate) fn write(out: &mut Vec<u8>, sequence: u64, payload: &[u8]) {
    let start = out.len();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    let sum = check(&out[start + 4..start + 16], payload);
    out.extend_from_slice(&sum);
    out.extend_from_slice(payload);
}

/// Reads the frame that starts exactly at `at`.
pub(crate) fn read(bytes: &[u8], at: usize) -> Option<Frame<'_>> {
    let head = bytes.get(at..at + HEADER)?;
    let number = |range: std::ops::Range<usize>| head[range].iter().rev().fold(0_u64, |n, &b| n << 8 | u64::from(b));
    if &head[..4] != MAGIC {
        return None;
    }
    let end = (at + HEADER).checked_add(number(4..8) as usize)?;
    let payload = bytes.get(at + HEADER..end)?;
    (check(&head[4..16], payload) == head[16..24]).then(|| Frame {
        sequence: number(8..16),
        payload,
        end,
    })
}

/// Finds the next whole frame after damage at `at`.
pub(crate) fn resync(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at + 1..)?;
    memchr::memmem::find_iter(rest, MAGIC)
        .map(|offset| at + 1 + offset)
        .find(|&at| read(bytes, at).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_come_back_and_any_cut_or_flip_is_noticed(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..5),
            spot in any::<prop::sample::Index>(),
            bit in 0..8_u8,
        ) {
            let mut bytes = Vec::new();
            for (i, payload) in payloads.iter().enumerate() {
                write(&mut bytes, i as u64, payload);
            }
            let mut at = 0;
            for (i, payload) in payloads.iter().enumerate() {
                let frame = read(&bytes, at).unwrap();
                prop_assert_eq!((frame.sequence, frame.payload), (i as u64, &payload[..]));
                at = frame.end;
            }
            prop_assert_eq!(at, bytes.len());
            let first = read(&bytes, 0).unwrap().end;
            prop_assert!(read(&bytes[..first - 1], 0).is_none());
            let spot = spot.index(first);
            bytes[spot] ^= 1 << bit;
            prop_assert!(read(&bytes, 0).is_none());
            prop_assert_eq!(resync(&bytes, 0), (payloads.len() > 1).then_some(first));
        }
    }
}
