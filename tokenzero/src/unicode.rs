//! General categories of Unicode as the splitting patterns use them, one byte a code point.
//!
//! The tables come from the build script, which takes them from the regex engine's own Unicode version, so that the
//! splitter and the reference's patterns cannot disagree about a character.

/// Upper and title case letters (Lu, Lt).
pub(crate) const UPPER: u8 = 1;
/// Lower case letters (Ll).
pub(crate) const LOWER: u8 = 1 << 1;
/// Letters without case and modifiers (Lm, Lo).
pub(crate) const OTHER: u8 = 1 << 2;
/// Marks (M).
pub(crate) const MARK: u8 = 1 << 3;
/// Numbers (N).
pub(crate) const NUMBER: u8 = 1 << 4;
/// White space, as `\s` has it.
pub(crate) const SPACE: u8 = 1 << 5;
/// Any letter.
pub(crate) const LETTER: u8 = UPPER | LOWER | OTHER;

static INDEX: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.index"));
static BLOCKS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.blocks"));

static ASCII: [u8; 128] = ascii();

const fn ascii() -> [u8; 128] {
    let mut table = [0; 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'A'..=b'Z' => UPPER,
            b'a'..=b'z' => LOWER,
            b'0'..=b'9' => NUMBER,
            b'\t'..=b'\r' | b' ' => SPACE,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// Returns the class of a code point.
pub(crate) fn class_of(code: u32) -> u8 {
    let block = INDEX.get((code >> 8) as usize).copied().unwrap_or(0);
    let at = usize::from(block) << 8 | (code & 0xff) as usize;
    BLOCKS.get(at).copied().unwrap_or(0)
}

/// Returns the class and length of the character at byte `at` of a UTF-8 text; none at its end.
#[inline(always)]
pub(crate) fn class_at(text: &[u8], at: usize) -> Option<(u8, usize)> {
    let first = *text.get(at)?;
    if first < 0x80 {
        return Some((ASCII[usize::from(first)], 1));
    }
    Some(wide_class(text, at, first))
}

#[inline(never)]
fn wide_class(text: &[u8], at: usize, first: u8) -> (u8, usize) {
    let tail = |n: usize| u32::from(text.get(at + n).copied().unwrap_or(0) & 0x3f);
    let first = u32::from(first);
    if first < 0xe0 {
        (class_of((first & 0x1f) << 6 | tail(1)), 2)
    } else if first < 0xf0 {
        (class_of((first & 0x0f) << 12 | tail(1) << 6 | tail(2)), 3)
    } else {
        (
            class_of((first & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3)),
            4,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ascii_table_agrees_with_the_generated_one() {
        for code in 0..128 {
            assert_eq!(ASCII[code as usize], class_of(code), "{code}");
        }
    }

    #[test]
    fn every_character_is_decoded_to_its_own_class() {
        let mut buffer = [0; 4];
        for c in '\0'..=char::MAX {
            let text = c.encode_utf8(&mut buffer);
            assert_eq!(class_at(text.as_bytes(), 0), Some((class_of(c.into()), c.len_utf8())));
        }
        assert_eq!(class_at(b"", 0), None);
    }

    #[test]
    fn the_standard_library_knows_white_space_alike() {
        for c in '\0'..=char::MAX {
            assert_eq!(class_of(c.into()) & SPACE != 0, c.is_whitespace(), "{c:?}");
        }
    }
}
