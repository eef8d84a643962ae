//! Puts an original together again from what is shown and what the cuts expand to.

use tokenzero::{MemoryStore, TokenZero};
use zero_contracts::tokens::{Cut, ProjectedText, Selector};
use zero_contracts::{CancelToken, Handle, TokenEngine};

/// Expands a cut and checks that it is as large as it says.
pub fn expand(engine: &TokenZero, store: &MemoryStore, handle: &Handle, cut: &Cut) -> Vec<u8> {
    let part = engine
        .expand(&handle.digest, &cut.selector, None, store, &CancelToken::new())
        .unwrap();
    assert!(part.next.is_none());
    let bytes = part.content.into_bytes();
    assert_eq!(bytes.len() as u64, cut.bytes, "{cut:?}");
    assert_eq!(part.bytes.len(), cut.bytes);
    bytes
}

/// Puts a text together again; its kept parts must be UTF-8.
pub fn text(engine: &TokenZero, store: &MemoryStore, shown: &ProjectedText) -> Vec<u8> {
    let Some(handle) = &shown.handle else {
        return shown.text.clone().into_bytes();
    };
    let (header, mut rest) = shown.text.split_once('\n').unwrap();
    assert!(
        header.starts_with('[') && header.ends_with(" bytes in all]"),
        "{header}"
    );
    let mut whole = Vec::new();
    for cut in &shown.cuts {
        let missing = expand(engine, store, handle, cut);
        let (at, length) = find_mark(rest, cut, missing.last() == Some(&b'\n'))
            .unwrap_or_else(|| panic!("no mark for {cut:?} in {rest:?}"));
        whole.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + length..];
        whole.extend_from_slice(&missing);
    }
    whole.extend_from_slice(rest.as_bytes());
    whole
}

/// Takes the marks out of a text, and its first line; returns what is content, more or less a line end.
pub fn content(shown: &ProjectedText) -> String {
    if shown.handle.is_none() {
        return shown.text.clone();
    }
    let mut rest = shown.text.split_once('\n').unwrap().1;
    let mut content = String::new();
    for cut in &shown.cuts {
        let (at, length) = find_mark(rest, cut, false).unwrap();
        content.push_str(&rest[..at]);
        rest = &rest[at + length..];
    }
    content + rest
}

/// Finds the mark of a cut: where it is and how long. A mark of bytes that end a line ends its own.
fn find_mark(text: &str, cut: &Cut, ends_line: bool) -> Option<(usize, usize)> {
    let begin = match &cut.selector {
        Selector::Lines(lines) if lines.first() == lines.last() => format!("[cut line {}", lines.first()),
        Selector::Lines(lines) => format!("[cut lines {}-{}", lines.first(), lines.last()),
        Selector::Bytes(bytes) => format!("[cut bytes {}-{}", bytes.start(), bytes.end()),
        other => panic!("{other:?}"),
    };
    let mut from = 0;
    while let Some(found) = text[from..].find(&begin) {
        let at = from + found;
        let rest = &text[at + begin.len()..];
        let is_bytes = matches!(cut.selector, Selector::Bytes(_));
        for end in ["]\n", ": repeats]\n", "]"] {
            if rest.starts_with(end) && (!is_bytes || end == "]" || ends_line) && (is_bytes || end != "]") {
                return Some((at, begin.len() + end.len()));
            }
        }
        from = at + 1;
    }
    None
}

/// Puts a JSON text together again.
pub fn json(engine: &TokenZero, store: &MemoryStore, shown: &str, handle: &Handle, cuts: &[Cut]) -> Vec<u8> {
    let mut rest = shown;
    let mut whole = Vec::new();
    for cut in cuts {
        let Selector::Bytes(bytes) = &cut.selector else {
            panic!("{cut:?}")
        };
        let name = format!("bytes {}-{}", bytes.start(), bytes.end());
        let at = rest.find(&name).unwrap_or_else(|| panic!("no {name} in {rest}"));
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        let (start, skip) = if let Some(before) = before.strip_suffix("[cut ") {
            (before.len(), "]")
        } else if before.ends_with("item, ") || before.ends_with("items, ") {
            (before.rfind("\"[cut ").unwrap(), "]\"")
        } else {
            assert!(before.ends_with("\":\""), "{before}");
            (before.rfind("\"[cut ").unwrap(), "\"")
        };
        whole.extend_from_slice(&rest.as_bytes()[..start]);
        whole.extend_from_slice(&expand(engine, store, handle, cut));
        rest = after.strip_prefix(skip).unwrap();
    }
    whole.extend_from_slice(rest.as_bytes());
    whole
}
