//! The hash of a token's bytes. The build script makes the tables with it and the crate looks tokens up with it, so it
//! lives in a file of its own that both compile.

const K: u64 = 0x9e37_79b9_7f4a_7c15;
const M: u64 = 0xd6e8_feb8_6659_fd93;

#[inline]
fn word(bytes: &[u8]) -> u64 {
    let mut buffer = [0; 8];
    buffer[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(buffer)
}

#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Hashes `bytes`: a multiply-and-fold over words of eight bytes. Not meant to resist an attacker; the tables are fixed.
#[inline]
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut state = K ^ (bytes.len() as u64).wrapping_mul(M);
    let mut rest = bytes;
    while let Some((head, tail)) = rest.split_first_chunk::<8>() {
        state = mix(state ^ u64::from_le_bytes(*head), M);
        rest = tail;
    }
    if !rest.is_empty() {
        state = mix(state ^ word(rest), M);
    }
    mix(state, K)
}
