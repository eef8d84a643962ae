//! Parts come back exactly, by every selector, in pieces that a budget allows.

use proptest::prelude::*;
use tokenzero::{MemoryStore, TokenZero};
use zero_contracts::tokens::{Expansion, Selector};
use zero_contracts::{ByteRange, CancelToken, Content, Digest, Error, ErrorKind, LineRange, ObjectStore, TokenEngine};

fn expand(store: &MemoryStore, object: &Digest, selector: &Selector, budget: Option<u64>) -> Result<Expansion, Error> {
    TokenZero::default().expand(object, selector, budget, store, &CancelToken::new())
}

fn bytes(start: u64, end: u64) -> Selector {
    Selector::Bytes(ByteRange::new(start, end).unwrap())
}

fn lines(first: u64, last: u64) -> Selector {
    Selector::Lines(LineRange::new(first, last).unwrap())
}

/// Follows `next` to the end.
fn all(store: &MemoryStore, object: &Digest, selector: Selector, budget: u64) -> Vec<u8> {
    let mut whole = Vec::new();
    let mut next = Some(selector);
    while let Some(selector) = next {
        let part = expand(store, object, &selector, Some(budget)).unwrap();
        assert!(part.tokens.tokens <= budget);
        assert_eq!(part.content.as_bytes().len() as u64, part.bytes.len());
        assert!(part.next.is_none() || !part.bytes.is_empty(), "no progress");
        whole.extend_from_slice(part.content.as_bytes());
        next = part.next;
    }
    whole
}

proptest! {
    #[test]
    fn following_next_brings_every_byte(
        text in "([a-z é中]{0,30}(\n|\r\n|)){1,30}", first in 1..12_u64, count in 0..9_u64, budget in 4..40_u64
    ) {
        let store = MemoryStore::new();
        let object = store.put(text.as_bytes()).unwrap();
        prop_assert_eq!(all(&store, &object, bytes(0, text.len() as u64 + 5), budget), text.as_bytes());
        // A simple model of lines.
        let model: Vec<&str> = text.split_inclusive('\n').collect();
        let last = first + count;
        if first as usize <= model.len() {
            let wanted = model[first as usize - 1..model.len().min(last as usize)].concat();
            prop_assert_eq!(all(&store, &object, lines(first, last), budget), wanted.as_bytes());
            let part = expand(&store, &object, &lines(first, last), None).unwrap();
            prop_assert_eq!(part.lines, Some(LineRange::new(first, last.min(model.len() as u64)).unwrap()));
        }
        // And of matches.
        let wanted: String = model.iter().filter(|line| line.contains("a")).copied().collect();
        match expand(&store, &object, &Selector::Match("a".into()), None) {
            Ok(_) => {
                let mut whole = Vec::new();
                let mut next = Some(Selector::Match("a".into()));
                while let Some(selector) = next {
                    let part = expand(&store, &object, &selector, None).unwrap();
                    whole.extend_from_slice(part.content.as_bytes());
                    next = part.next;
                }
                prop_assert_eq!(whole, wanted.as_bytes());
            }
            Err(error) => {
                prop_assert_eq!(error.kind, ErrorKind::NotFound);
                prop_assert!(wanted.is_empty());
            }
        }
    }
}

#[test]
fn pointers_lead_to_values() {
    let store = MemoryStore::new();
    let object = store.put(b"{\n \"a\": [10, {\"b\": \"x\"}]\n}").unwrap();
    let part = expand(&store, &object, &Selector::Pointer("/a/1/b".into()), None).unwrap();
    assert_eq!(part.content, Content::Text("\"x\"".into()));
    assert_eq!(part.lines, Some(LineRange::new(2, 2).unwrap()));
    let error = |selector: &str| {
        expand(&store, &object, &Selector::Pointer(selector.into()), None)
            .unwrap_err()
            .kind
    };
    assert_eq!(error("/a/2"), ErrorKind::NotFound);
    assert_eq!(error("a"), ErrorKind::InvalidInput);
}

#[test]
fn what_is_not_there_is_told_apart() {
    let store = MemoryStore::new();
    let object = store.put(b"one\ntwo\n").unwrap();
    let kind = |selector: Selector| expand(&store, &object, &selector, None).unwrap_err().kind;
    assert_eq!(kind(lines(3, 4)), ErrorKind::InvalidInput);
    assert_eq!(kind(bytes(9, 10)), ErrorKind::InvalidInput);
    assert_eq!(kind(Selector::Match("three".into())), ErrorKind::NotFound);
    assert_eq!(kind(Selector::Match(String::new())), ErrorKind::InvalidInput);
    assert_eq!(kind(Selector::Pointer("/a".into())), ErrorKind::InvalidInput);
    assert_eq!(
        expand(&store, &Digest::of(b"?"), &lines(1, 1), None).unwrap_err().kind,
        ErrorKind::NotFound
    );
    assert_eq!(
        expand(&store, &object, &bytes(0, 3), Some(0)).unwrap_err().kind,
        ErrorKind::InvalidInput
    );
}

#[test]
fn an_empty_object_has_one_empty_line() {
    let store = MemoryStore::new();
    let object = store.put(b"").unwrap();
    let part = expand(&store, &object, &lines(1, 5), Some(3)).unwrap();
    assert_eq!((part.content, part.next), (Content::Text(String::new()), None));
    assert!(expand(&store, &object, &lines(2, 2), None).is_err());
}

#[test]
fn bytes_that_are_no_text_come_back_as_bytes() {
    let store = MemoryStore::new();
    let raw: Vec<u8> = (0..=255).cycle().take(5000).collect();
    let object = store.put(&raw).unwrap();
    assert_eq!(all(&store, &object, bytes(0, 5000), 50), raw);
    assert_eq!(expand(&store, &object, &bytes(128, 200), None).unwrap().lines, None);
}

#[test]
fn a_line_longer_than_the_budget_goes_on_by_bytes() {
    let store = MemoryStore::new();
    let text = format!("{}\nshort\n", "word ".repeat(2000));
    let object = store.put(text.as_bytes()).unwrap();
    let part = expand(&store, &object, &lines(1, 1), Some(100)).unwrap();
    assert!(part.tokens.tokens >= 95 && matches!(part.next, Some(Selector::Bytes(_))));
    assert_eq!(all(&store, &object, lines(1, 2), 100), text.as_bytes());
}
