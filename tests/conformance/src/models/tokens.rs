//! A token engine to which a token is four bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use zero_contracts::tokens::{
    Cut, Expansion, ProjectText, ProjectedText, ProjectedValue, Selector, TextKind, TokenCount,
};
use zero_contracts::{
    ByteRange, CancelToken, Content, Digest, Error, ErrorKind, Handle, LineRange, ObjectStore, TokenEngine,
};

use crate::suites::tokens::Tokens;

/// Bytes of a token.
const TOKEN: u64 = 4;

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainTokens;

impl Tokens for PlainTokens {
    fn engine(&self) -> Arc<dyn TokenEngine> {
        Arc::new(*self)
    }
}

fn measure(text: &str) -> TokenCount {
    TokenCount {
        tokens: (text.len() as u64).div_ceil(TOKEN),
        encoding: "four-bytes".into(),
        exact: true,
    }
}

fn too_small() -> Error {
    Error::invalid("the budget is below the smallest mark").with_path("budget")
}

/// The greatest number up to `most` for which a text fits.
fn greatest<T>(most: usize, budget: u64, make: impl Fn(usize) -> (String, T)) -> Option<(String, T)> {
    let fits = |n| measure(&make(n).0).tokens <= budget;
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    fits(low).then(|| make(low))
}

/// Lines in the order of their weight: failures in a log, then from both ends to the middle.
fn by_weight(lines: &[&str], kind: TextKind) -> Vec<usize> {
    let failing = |n: &usize| kind == TextKind::Log && ["FAILED", "error"].iter().any(|word| lines[*n].contains(word));
    let ends = (0..lines.len().div_ceil(2)).flat_map(|n| [n, lines.len() - 1 - n]);
    let mut seen = BTreeSet::new();
    (0..lines.len())
        .filter(failing)
        .chain(ends)
        .filter(|n| seen.insert(*n))
        .collect()
}

fn assemble(lines: &[&str], kept: &BTreeSet<usize>) -> (String, Vec<Cut>) {
    let (mut text, mut cuts) = (String::new(), Vec::new());
    let mut at = 0;
    while at < lines.len() {
        if kept.contains(&at) {
            text.push_str(lines[at]);
            at += 1;
            continue;
        }
        let end = (at..lines.len()).find(|n| kept.contains(n)).unwrap_or(lines.len());
        let (first, last) = (at as u64 + 1, end as u64);
        text.push_str(&format!("… cut: lines {first} to {last} …\n"));
        cuts.extend(LineRange::new(first, last).ok().map(|range| Cut {
            selector: Selector::Lines(range),
            bytes: lines[at..end].iter().map(|line| line.len() as u64).sum(),
        }));
        at = end;
    }
    (text, cuts)
}

fn project(text: &str, how: &ProjectText<'_>) -> Result<(String, Vec<Cut>), Error> {
    if measure(text).tokens <= how.budget {
        return Ok((text.to_owned(), Vec::new()));
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let order = by_weight(&lines, how.kind);
    greatest(order.len(), how.budget, |n| {
        assemble(&lines, &order[..n].iter().copied().collect())
    })
    .ok_or_else(too_small)
}

/// A value with strings and arrays cut to a length.
fn shorten(value: &Value, length: usize, pointer: &str, cuts: &mut Vec<Cut>) -> Value {
    let mut cut = |bytes: usize| {
        cuts.push(Cut {
            selector: Selector::Pointer(pointer.to_owned()),
            bytes: bytes as u64,
        });
    };
    match value {
        Value::String(text) if text.chars().count() > length.max(16) => {
            cut(text.len());
            let head: String = text.chars().take(length).collect();
            Value::String(format!("{head}… cut: {pointer}"))
        }
        Value::Array(items) => {
            let mut kept: Vec<Value> = items
                .iter()
                .take(length)
                .enumerate()
                .map(|(n, item)| shorten(item, length, &format!("{pointer}/{n}"), cuts))
                .collect();
            if items.len() > length {
                let bytes = value.to_string().len() as u64;
                cuts.push(Cut {
                    selector: Selector::Pointer(pointer.to_owned()),
                    bytes,
                });
                kept.push(Value::String(format!("… cut: {} more", items.len() - length)));
            }
            Value::Array(kept)
        }
        Value::Object(members) => {
            let shortened = members.iter().map(|(key, member)| {
                let below = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                (key.clone(), shorten(member, length, &below, cuts))
            });
            Value::Object(shortened.collect())
        }
        other => other.clone(),
    }
}

/// The text of the value at a pointer.
fn at_pointer<'a>(text: &'a str, pointer: &str) -> Option<&'a str> {
    let mut at = text.trim();
    for part in pointer.split('/').skip(1) {
        let name = part.replace("~1", "/").replace("~0", "~");
        let found: &RawValue = match name.parse::<usize>() {
            Ok(n) if at.starts_with('[') => serde_json::from_str::<Vec<&RawValue>>(at).ok()?.get(n)?,
            _ => serde_json::from_str::<BTreeMap<String, &RawValue>>(at)
                .ok()?
                .get(&name)?,
        };
        at = found.get();
    }
    Some(at)
}

fn line_starts(text: &str) -> Vec<usize> {
    let after = text
        .match_indices('\n')
        .map(|(at, _)| at + 1)
        .filter(|at| *at < text.len());
    std::iter::once(0).chain(after).collect()
}

/// Where a selector's part lies.
fn locate(text: &str, selector: &Selector) -> Result<(usize, usize), Error> {
    let starts = line_starts(text);
    let end_of = |line: usize| starts.get(line).copied().unwrap_or(text.len());
    match selector {
        Selector::Bytes(range) => {
            let range = range.within(text.len() as u64)?;
            Ok((range.start() as usize, range.end() as usize))
        }
        Selector::Lines(lines) => {
            let lines = lines.within(starts.len() as u64)?;
            Ok((starts[lines.first() as usize - 1], end_of(lines.last() as usize)))
        }
        Selector::Pointer(pointer) => {
            let part = at_pointer(text, pointer)
                .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is nothing at `{pointer}`")))?;
            let start = part.as_ptr() as usize - text.as_ptr() as usize;
            Ok((start, start + part.len()))
        }
        Selector::Match(wanted) => first_match(text, wanted, 0, &starts),
        Selector::MatchFrom(wanted, from) => first_match(text, wanted, *from as usize, &starts),
    }
}

fn first_match(text: &str, wanted: &str, from: usize, starts: &[usize]) -> Result<(usize, usize), Error> {
    let at = text
        .get(from..)
        .and_then(|rest| rest.find(wanted))
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no line holds {wanted:?}")))?;
    let line = starts.partition_point(|start| *start <= from + at) - 1;
    Ok((starts[line], starts.get(line + 1).copied().unwrap_or(text.len())))
}

impl TokenEngine for PlainTokens {
    fn count(&self, text: &str) -> TokenCount {
        measure(text)
    }

    fn project_text(
        &self,
        text: &str,
        how: &ProjectText<'_>,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedText, Error> {
        token.check()?;
        let (shown, cuts) = project(text, how)?;
        let handle = if cuts.is_empty() {
            None
        } else {
            Some(Handle::blob(objects.put(text.as_bytes())?))
        };
        Ok(ProjectedText {
            raw: measure(text),
            shown: measure(&shown),
            text: shown,
            handle,
            cuts,
        })
    }

    fn project_object(
        &self,
        object: &Digest,
        how: &ProjectText<'_>,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedText, Error> {
        token.check()?;
        let bytes = objects.get(object)?;
        let text = String::from_utf8_lossy(&bytes);
        let (shown, cuts) = project(&text, how)?;
        Ok(ProjectedText {
            raw: measure(&text),
            shown: measure(&shown),
            text: shown,
            handle: (!cuts.is_empty()).then(|| Handle::blob(*object)),
            cuts,
        })
    }

    fn project_value(
        &self,
        value: &Value,
        budget: u64,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedValue, Error> {
        token.check()?;
        let text = value.to_string();
        let raw = measure(&text);
        if raw.tokens <= budget {
            return Ok(ProjectedValue {
                value: value.clone().into(),
                handle: None,
                shown: raw.clone(),
                raw,
                cuts: Vec::new(),
            });
        }
        let make = |length| {
            let mut cuts = Vec::new();
            let value = shorten(value, length, "", &mut cuts);
            (value.to_string(), (value, cuts))
        };
        let (shown, (value, cuts)) = greatest(text.len(), budget, make).ok_or_else(too_small)?;
        Ok(ProjectedValue {
            value: value.into(),
            handle: Some(Handle::blob(objects.put(text.as_bytes())?)),
            raw,
            shown: measure(&shown),
            cuts,
        })
    }

    fn expand(
        &self,
        object: &Digest,
        selector: &Selector,
        budget: Option<u64>,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<Expansion, Error> {
        token.check()?;
        let bytes = objects.get(object)?;
        let text = String::from_utf8_lossy(&bytes);
        let (start, whole_end) = locate(&text, selector)?;
        let most = budget.map_or(usize::MAX, |budget| (budget * TOKEN) as usize);
        let mut end = whole_end.min(start.saturating_add(most));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let line_of = |byte: usize| line_starts(&text).partition_point(|start| *start <= byte) as u64;
        let next = match end < whole_end {
            true => Some(Selector::Bytes(ByteRange::new(end as u64, whole_end as u64)?)),
            false => None,
        };
        Ok(Expansion {
            content: Content::Text(text[start..end].to_owned()),
            bytes: ByteRange::new(start as u64, end as u64)?,
            lines: LineRange::new(line_of(start), line_of(end.max(start + 1) - 1)).ok(),
            tokens: measure(&text[start..end]),
            next,
        })
    }
}
