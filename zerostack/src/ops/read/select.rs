//! Selectors: which part of a content is read.
//!
//! A cursor (`next`) is the byte at which the selection goes on; it is only ever used with the same selector.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use serde_json::value::RawValue;
use zero_contracts::content::{Bytes, Content};
use zero_contracts::read::{Encoding, PartialRange, PartialRead, ReadOptions};
use zero_contracts::{ByteRange, CancelToken, Digest, Error, ErrorKind, Handle, LineRange, Result, WorkspacePath};

use super::searched::{Measured, Searched};
use super::{encoding, lines};
use crate::cell::Cell;

/// The one selector of a read.
pub(super) struct Selection<'a> {
    selector: Selector<'a>,
    limit: Option<usize>,
    from: Option<usize>,
}

enum Selector<'a> {
    Lines(LineRange),
    Bytes(ByteRange),
    Symbol(&'a str),
    Match(&'a str),
    Pointer(&'a str),
}

/// A part of a content, and where the selection goes on.
#[derive(Debug, PartialEq)]
pub(super) struct Part {
    range: Range<usize>,
    next: Option<usize>,
}

impl<'a> Selection<'a> {
    /// Finds the selector among the options; none if there is none.
    ///
    /// # Errors
    /// `invalid_input` for two selectors, a cursor without a selector, or a cursor that is none.
    pub(super) fn of(options: &'a ReadOptions) -> Result<Option<Self>> {
        let given = [
            options.lines.map(Selector::Lines),
            options.bytes.map(Selector::Bytes),
            options.symbol.as_deref().map(Selector::Symbol),
            options.match_text.as_deref().map(Selector::Match),
            options.pointer.as_deref().map(Selector::Pointer),
        ];
        let mut given = given.into_iter().flatten();
        let Some(selector) = given.next() else {
            return match (&options.next, options.limit) {
                (None, None) => Ok(None),
                (Some(_), _) => {
                    Err(Error::invalid("`next` goes on with a selector: give the same one").with_path("options.next"))
                }
                (None, Some(_)) => Err(Error::invalid("`limit` needs a selector here").with_path("options.limit")),
            };
        };
        if given.next().is_some() {
            return Err(Error::invalid("only one selector can be given")
                .with_path("options")
                .with_accepted(["lines", "bytes", "symbol", "match", "pointer"]));
        }
        let from = options.next.as_deref().map(str::parse).transpose().map_err(|_| {
            Error::invalid("`next` is not a cursor that an earlier read gave").with_path("options.next")
        })?;
        let limit = match options.limit {
            Some(0) => return Err(Error::invalid("`limit` is at least 1").with_path("options.limit")),
            limit => limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        };
        Ok(Some(Self { selector, limit, from }))
    }

    /// Whether it is one of many that a cell goes through, one after the other.
    pub(super) const fn is_match(&self) -> bool {
        matches!(self.selector, Selector::Match(_))
    }

    /// Finds the part.
    ///
    /// # Errors
    /// `invalid_input` for a range past the end or a malformed pointer, `not_found` for a symbol, text or pointer that is
    /// not there, `conflict` for several definitions of a symbol, `unsupported` for a symbol of an unknown language.
    pub(super) fn select(&self, cell: &Cell, path: &WorkspacePath, bytes: &[u8], token: &CancelToken) -> Result<Part> {
        let mut part = match &self.selector {
            Selector::Lines(range) => whole(line_bytes(bytes, range.within(lines(bytes))?)),
            Selector::Bytes(range) => {
                let range = range.within(bytes.len() as u64)?;
                whole(range.start() as usize..range.end() as usize)
            }
            Selector::Match(text) => find_text(bytes, text, self.from.unwrap_or(0))?,
            Selector::Pointer(pointer) => whole(json_bytes(bytes, pointer)?),
            Selector::Symbol(symbol) => {
                let found = cell.kernel.structure.symbol(path, bytes, symbol, token)?;
                let [range] = found.as_slice() else {
                    if found.is_empty() {
                        return Err(Error::new(
                            ErrorKind::NotFound,
                            format!("`{symbol}` is not defined here"),
                        ));
                    }
                    let places: Vec<_> = found
                        .iter()
                        .map(|range| format!("lines: [{}, {}]", range.start.line, range.end.line))
                        .collect();
                    return Err(Error::new(
                        ErrorKind::Conflict,
                        format!("`{symbol}` has {} definitions here", found.len()),
                    )
                    .with_accepted(places));
                };
                let at = |byte: u64| usize::try_from(byte).unwrap_or(usize::MAX).min(bytes.len());
                whole(at(range.start.byte)..at(range.end.byte))
            }
        };
        if !matches!(self.selector, Selector::Match(_))
            && let Some(from) = self.from
        {
            if !part.range.contains(&from) {
                return Err(Error::invalid("`next` lies outside the selection").with_path("options.next"));
            }
            part.range.start = from;
        }
        if let Some(limit) = self.limit
            && part.range.len() > limit
        {
            let mut end = part.range.start + limit;
            // A text is cut between characters, but never to nothing.
            while end > part.range.start + 1 && bytes.get(end).is_some_and(|b| b & 0xc0 == 0x80) {
                end -= 1;
            }
            part = Part {
                range: part.range.start..end,
                next: Some(end),
            };
        }
        Ok(part)
    }
}

impl Part {
    /// Whether there is more.
    pub(super) const fn goes_on(&self) -> bool {
        self.next.is_some()
    }

    /// Describes the part of `whole`.
    ///
    /// # Errors
    /// None in practice: the range lies inside.
    pub(super) fn partial(self, whole: &[u8], digest: Digest, snapshot: Option<Handle>) -> Result<PartialRead> {
        self.measured(whole, &Measured::new(whole), digest, snapshot)
    }

    /// Describes the part of what is held.
    ///
    /// # Errors
    /// As for [`partial`](Self::partial).
    pub(super) fn of(self, held: &Searched, snapshot: Option<Handle>) -> Result<PartialRead> {
        self.measured(&held.bytes, &held.measured, held.digest, snapshot)
    }

    fn measured(
        self,
        whole: &[u8],
        measured: &Measured,
        digest: Digest,
        snapshot: Option<Handle>,
    ) -> Result<PartialRead> {
        let Self { range, next } = self;
        let part = &whole[range.clone()];
        let of = measured.of;
        let lines = match of.lines {
            None => None,
            Some(_) => {
                let line = |at: usize| measured.line(whole, at);
                let last = if part.is_empty() { range.start } else { range.end - 1 };
                Some(LineRange::new(line(range.start), line(last))?)
            }
        };
        let content = match encoding(part) {
            Encoding::Utf8 => Content::from_bytes(part.to_vec()),
            Encoding::Binary => Content::Bytes(Bytes(part.to_vec())),
        };
        let bytes = ByteRange::new(range.start as u64, range.end as u64)?;
        let next = next.map(|next| next.to_string());
        Ok(PartialRead {
            content,
            range: PartialRange { bytes, lines },
            of,
            digest,
            snapshot,
            next,
        })
    }
}

fn whole(range: Range<usize>) -> Part {
    Part { range, next: None }
}

/// Bytes of whole lines, line ends included. The range lies inside.
fn line_bytes(bytes: &[u8], range: LineRange) -> Range<usize> {
    let mut starts = std::iter::once(0).chain(memchr::memchr_iter(b'\n', bytes).map(|at| at + 1));
    let index = |line: u64| usize::try_from(line - 1).unwrap_or(usize::MAX);
    let start = starts.nth(index(range.first())).unwrap_or(bytes.len());
    let end = starts
        .nth(index(range.last() - range.first() + 1))
        .unwrap_or(bytes.len());
    start..end
}

/// The first line at or after `from` that holds the text; the cursor leads to the line after it.
fn find_text(bytes: &[u8], text: &str, from: usize) -> Result<Part> {
    if text.is_empty() {
        return Err(Error::invalid("`match` is empty").with_path("options.match"));
    }
    let finder = memchr::memmem::Finder::new(text);
    let find = |from: usize| bytes.get(from..).and_then(|rest| finder.find(rest)).map(|at| from + at);
    let Some(at) = find(from) else {
        return Err(Error::new(ErrorKind::NotFound, format!("`{text}` is not there")));
    };
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
    let last = at + text.len();
    let end = memchr::memchr(b'\n', &bytes[last - 1..]).map_or(bytes.len(), |end| last + end);
    Ok(Part {
        range: start..end,
        next: find(end).map(|_| end),
    })
}

/// Bytes of the JSON value at an RFC 6901 pointer, exactly as they stand.
fn json_bytes(bytes: &[u8], pointer: &str) -> Result<Range<usize>> {
    let not_json =
        |e: serde_json::Error| Error::invalid(format!("`pointer` needs JSON: {e}")).with_path("options.pointer");
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(Error::invalid("a JSON pointer is empty or starts with `/`").with_path("options.pointer"));
    }
    let mut value: &RawValue = serde_json::from_slice(bytes).map_err(not_json)?;
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let below = if value.get().starts_with('{') {
            let mut fields: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(value.get()).map_err(not_json)?;
            fields.remove(token.as_str())
        } else if value.get().starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(value.get()).map_err(not_json)?;
            let canonical = token == "0" || !token.starts_with(['0', '+']);
            token
                .parse::<usize>()
                .ok()
                .filter(|_| canonical)
                .and_then(|index| items.get(index).copied())
        } else {
            None
        };
        value =
            below.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("`{pointer}` names nothing: no `{token}`")))?;
    }
    let start = value.get().as_ptr() as usize - bytes.as_ptr() as usize;
    Ok(start..start + value.get().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], range: Range<usize>) -> &str {
        std::str::from_utf8(&bytes[range]).unwrap()
    }

    #[test]
    fn lines_come_with_their_ends() {
        let content = b"a\nbb\r\nc";
        let lines = |a, b| text(content, line_bytes(content, LineRange::new(a, b).unwrap()));
        assert_eq!(
            (lines(1, 1), lines(2, 3), lines(1, 3)),
            ("a\n", "bb\r\nc", "a\nbb\r\nc")
        );
    }

    #[test]
    fn matches_go_on_line_by_line() {
        let content = b"x one\ny\nx two x\n";
        let first = find_text(content, "x", 0).unwrap();
        assert_eq!(text(content, first.range), "x one\n");
        let second = find_text(content, "x", first.next.unwrap()).unwrap();
        assert_eq!((text(content, second.range), second.next), ("x two x\n", None));
        assert_eq!(find_text(content, "z", 0).unwrap_err().kind, ErrorKind::NotFound);
        let across = find_text(b"a\nb\nc\n", "a\nb", 0).unwrap();
        assert_eq!(across.range, 0..4);
    }

    #[test]
    fn pointers_give_the_exact_bytes() {
        let content = br#" {"a~/b": [1, {"c": "d" }], "": null}"#;
        for (pointer, expected) in [
            ("/a~0~1b/1", r#"{"c": "d" }"#),
            ("/a~0~1b/0", "1"),
            ("/", "null"),
            ("/a~0~1b/1/c", "\"d\""),
        ] {
            assert_eq!(
                text(content, json_bytes(content, pointer).unwrap()),
                expected,
                "{pointer}"
            );
        }
        for missing in ["/x", "/a~0~1b/2", "/a~0~1b/00", "/a~0~1b/1/c/d"] {
            assert_eq!(
                json_bytes(content, missing).unwrap_err().kind,
                ErrorKind::NotFound,
                "{missing}"
            );
        }
        assert_eq!(json_bytes(content, "x").unwrap_err().kind, ErrorKind::InvalidInput);
        assert_eq!(json_bytes(b"{", "/x").unwrap_err().kind, ErrorKind::InvalidInput);
    }
}
