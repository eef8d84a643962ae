//! Places in text: bytes are 0-based and half-open, lines and columns 1-based and inclusive.

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind};

/// A half-open range of bytes, 0-based: JSON `[start, end]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "BytePair", into = "BytePair")]
pub struct ByteRange {
    start: u64,
    end: u64,
}

impl ByteRange {
    /// Makes the range `start..end`.
    ///
    /// # Errors
    /// `invalid_input` if `start` is after `end`.
    pub fn new(start: u64, end: u64) -> Result<Self, Error> {
        if start > end {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("byte range [{start}, {end}] ends before it starts"),
            ));
        }
        Ok(Self { start, end })
    }

    /// First byte, 0-based.
    pub const fn start(self) -> u64 {
        self.start
    }

    /// The byte after the last one.
    pub const fn end(self) -> u64 {
        self.end
    }

    /// Number of bytes.
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Tells whether no byte is inside.
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Cuts the range to a content of `length` bytes.
    ///
    /// # Errors
    /// `invalid_input` if it starts past the end.
    pub fn within(self, length: u64) -> Result<Self, Error> {
        if self.start > length {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("byte range starts at {} but there are {length} bytes", self.start),
            ));
        }
        Ok(Self {
            start: self.start,
            end: self.end.min(length),
        })
    }
}

/// A range as JSON gives it.
#[derive(Serialize, Deserialize)]
#[serde(expecting = "[start, end]")]
struct BytePair(u64, u64);

impl TryFrom<BytePair> for ByteRange {
    type Error = Error;
    fn try_from(BytePair(start, end): BytePair) -> Result<Self, Error> {
        Self::new(start, end)
    }
}

impl From<ByteRange> for BytePair {
    fn from(range: ByteRange) -> Self {
        Self(range.start, range.end)
    }
}

/// An inclusive range of lines, 1-based: JSON `[first, last]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "LinePair", into = "LinePair")]
pub struct LineRange {
    first: u64,
    last: u64,
}

impl LineRange {
    /// Makes the range `first..=last`.
    ///
    /// # Errors
    /// `invalid_input` if `first` is 0 or after `last`.
    pub fn new(first: u64, last: u64) -> Result<Self, Error> {
        if first == 0 || first > last {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("line range [{first}, {last}]: lines count from 1 and the first comes first"),
            ));
        }
        Ok(Self { first, last })
    }

    /// First line, 1-based.
    pub const fn first(self) -> u64 {
        self.first
    }

    /// Last line, included.
    pub const fn last(self) -> u64 {
        self.last
    }

    /// Cuts the range to a content of `lines` lines.
    ///
    /// # Errors
    /// `invalid_input` if it starts past the end. An empty content has one empty line.
    pub fn within(self, lines: u64) -> Result<Self, Error> {
        let lines = lines.max(1);
        if self.first > lines {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("line range starts at {} but there are {lines} lines", self.first),
            ));
        }
        Ok(Self {
            first: self.first,
            last: self.last.min(lines),
        })
    }
}

/// A range as JSON gives it.
#[derive(Serialize, Deserialize)]
#[serde(expecting = "[first, last]")]
struct LinePair(u64, u64);

impl TryFrom<LinePair> for LineRange {
    type Error = Error;
    fn try_from(LinePair(first, last): LinePair) -> Result<Self, Error> {
        Self::new(first, last)
    }
}

impl From<LineRange> for LinePair {
    fn from(range: LineRange) -> Self {
        Self(range.first, range.last)
    }
}

/// A line and column, both 1-based; columns count Unicode scalar values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct Location {
    /// Line, 1-based.
    pub line: u64,
    /// Column in Unicode scalar values, 1-based.
    pub column: u64,
}

/// A place in a text by line, column and byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct Position {
    /// Line, 1-based.
    pub line: u64,
    /// Column in Unicode scalar values, 1-based.
    pub column: u64,
    /// Byte offset, 0-based.
    pub byte: u64,
}

/// A piece of a text. `start` is its first scalar value; `end.byte` is the byte after its last, and `end.line` and
/// `end.column` name that last scalar value itself (for an empty range, the same place as `start`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct TextRange {
    /// Where it starts.
    pub start: Position,
    /// Where it ends.
    pub end: Position,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_at_the_end_and_refused_past_it() {
        assert_eq!(
            ByteRange::new(2, 9).unwrap().within(4).unwrap(),
            ByteRange::new(2, 4).unwrap()
        );
        assert!(ByteRange::new(5, 9).unwrap().within(4).is_err());
        assert!(ByteRange::new(4, 9).unwrap().within(4).unwrap().is_empty());
        assert_eq!(
            LineRange::new(1, 9).unwrap().within(0).unwrap(),
            LineRange::new(1, 1).unwrap()
        );
        assert!(LineRange::new(3, 9).unwrap().within(2).is_err());
        assert!(LineRange::new(0, 1).is_err() && LineRange::new(2, 1).is_err() && ByteRange::new(2, 1).is_err());
    }

    #[test]
    fn json_form_is_a_pair_and_is_validated() {
        assert_eq!(serde_json::to_string(&LineRange::new(3, 7).unwrap()).unwrap(), "[3,7]");
        assert!(serde_json::from_str::<LineRange>("[7,3]").is_err());
        assert!(serde_json::from_str::<ByteRange>("[1]").is_err());
    }
}
