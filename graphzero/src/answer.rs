//! From hits to an answer: order, pages, and items with their text.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use zero_contracts::find::{Absence, Confidence, Coverage, DefinitionSite, FindItem, FindRequest, FindResult, Skipped};
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, Position, SourceView, TextRange, WorkspacePath};

use crate::cursor::Binding;
use crate::facts::Span;
use crate::facts_builder::chars;

/// Items of a page when the request does not say.
const DEFAULT_LIMIT: u64 = 100;

/// Longest text of an item in bytes: a minified line must not fill an answer.
const MAX_TEXT: usize = 4096;

/// One thing found, before its text is read.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The file.
    pub path: WorkspacePath,
    /// Its content.
    pub digest: Digest,
    /// Where in it.
    pub span: Span,
    /// Qualified symbol.
    pub symbol: Option<String>,
    /// Kind of the symbol or use.
    pub kind: Option<&'static str>,
    /// What the symbol lies in.
    pub container: Option<String>,
    /// How sure it is.
    pub confidence: Option<Confidence>,
    /// What it refers to, best first.
    pub definitions: Vec<DefinitionSite>,
    /// Chain of evidence.
    pub via: Vec<String>,
    /// Lies in a test.
    pub test: bool,
    /// Rank.
    pub score: Option<f64>,
    /// What metavariables matched.
    pub captures: BTreeMap<String, String>,
}

impl Hit {
    /// Makes a hit with nothing but a place.
    pub fn at(path: &WorkspacePath, digest: Digest, span: Span) -> Self {
        Self {
            path: path.clone(),
            digest,
            span,
            symbol: None,
            kind: None,
            container: None,
            confidence: None,
            definitions: Vec::new(),
            via: Vec::new(),
            test: false,
            score: None,
            captures: BTreeMap::new(),
        }
    }
}

/// The part of a list that one page shows.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// First item shown.
    pub from: usize,
    /// The item after the last shown.
    pub to: usize,
    binding: Binding,
    total: usize,
}

impl Page {
    /// Cuts the page a request asks for out of `total` items.
    ///
    /// # Errors
    /// `invalid_input` and `conflict` as for [`Binding::offset`]; `invalid_input` for a limit of zero.
    pub fn cut(request: &FindRequest, binding: Binding, total: usize) -> Result<Self, Error> {
        let from = request
            .options
            .next
            .as_deref()
            .map_or(Ok(0), |next| binding.offset(next))?;
        let limit = request.options.limit.unwrap_or(DEFAULT_LIMIT);
        if limit == 0 {
            return Err(Error::invalid("`limit` must be at least 1").with_path("options.limit"));
        }
        let from = from.min(total);
        let to = from
            .saturating_add(usize::try_from(limit).unwrap_or(usize::MAX))
            .min(total);
        Ok(Self {
            from,
            to,
            binding,
            total,
        })
    }

    /// Returns the cursor of the next page; none if this is the last.
    pub fn next(self) -> Option<String> {
        (self.to < self.total).then(|| self.binding.cursor(self.to))
    }

    /// Wraps the items of this page.
    pub fn result(self, view: &dyn SourceView, items: Vec<FindItem>, coverage: Coverage, certain: bool) -> FindResult {
        let next = self.next();
        FindResult {
            items,
            total: self.total as u64,
            complete: next.is_none() && coverage.skipped.is_empty(),
            coverage,
            freshness: view.freshness(),
            absence: (self.total == 0).then_some(if certain {
                Absence::Certified
            } else {
                Absence::Uncertified
            }),
            next,
        }
    }
}

/// Reads the text of hits and makes items of them, in the same order.
///
/// # Errors
/// A retryable `conflict` if a file changed since it was indexed; errors of the view.
pub fn items(view: &dyn SourceView, hits: &[Hit], token: &CancelToken) -> Result<Vec<FindItem>, Error> {
    let mut contents: HashMap<&WorkspacePath, Arc<[u8]>> = HashMap::new();
    let mut items = Vec::with_capacity(hits.len());
    for hit in hits {
        token.check()?;
        let bytes = match contents.get(&hit.path) {
            Some(bytes) => Arc::clone(bytes),
            None => {
                let content = view.read(&hit.path, token).map_err(|error| match error.kind {
                    ErrorKind::NotFound => changed(&hit.path),
                    _ => error,
                })?;
                if content.digest != hit.digest {
                    return Err(changed(&hit.path));
                }
                contents.insert(&hit.path, Arc::clone(&content.bytes));
                content.bytes
            }
        };
        let mut sites = hit.definitions.iter().cloned();
        let definition = sites.next();
        items.push(FindItem {
            path: hit.path.to_string(),
            text: line_text(&bytes, hit.span),
            range: range(&bytes, hit.span),
            digest: hit.digest,
            symbol: hit.symbol.clone(),
            kind: hit.kind.map(str::to_owned),
            container: hit.container.clone(),
            confidence: hit.confidence,
            definition,
            alternatives: sites.collect(),
            via: hit.via.clone(),
            test: hit.test,
            score: hit.score,
            captures: hit.captures.clone(),
            context: None,
        });
    }
    Ok(items)
}

/// The error of a file that changed between indexing and answering.
pub fn changed(path: &WorkspacePath) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!("`{path}` changed while it was searched: ask again"),
    )
    .with_path(path)
    .retryable(true)
}

/// Turns a span into lines, columns and bytes.
pub fn range(bytes: &[u8], span: Span) -> TextRange {
    let position = |at: usize| {
        let at = at.min(bytes.len());
        let line_start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1);
        Position {
            line: memchr::memchr_iter(b'\n', &bytes[..at]).count() as u64 + 1,
            column: chars(&bytes[line_start..at]) as u64 + 1,
            byte: at as u64,
        }
    };
    let start = span.start as usize;
    // Lines and columns of the end name the last scalar value itself, its byte the one after it.
    let mut last = (span.end as usize).saturating_sub(1).max(start);
    while last > start && bytes.get(last).is_some_and(|b| b & 0xc0 == 0x80) {
        last -= 1;
    }
    let mut end = position(last);
    end.byte = u64::from(span.end);
    TextRange {
        start: position(start),
        end,
    }
}

/// Returns the lines a span stands on, without the last line end.
pub fn line_text(bytes: &[u8], span: Span) -> String {
    let start = (span.start as usize).min(bytes.len());
    let end = (span.end as usize).clamp(start, bytes.len());
    let from = memchr::memrchr(b'\n', &bytes[..start]).map_or(0, |newline| newline + 1);
    let last = if end > start && bytes[end - 1] == b'\n' {
        end - 1
    } else {
        end
    };
    let mut to = memchr::memchr(b'\n', &bytes[last..]).map_or(bytes.len(), |newline| last + newline);
    if to > from && bytes[to - 1] == b'\r' {
        to -= 1;
    }
    let mut text = String::from_utf8_lossy(&bytes[from..to.max(from)]).into_owned();
    if text.len() > MAX_TEXT {
        let mut cut = MAX_TEXT;
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// Notes a file that was left out.
pub fn skip(path: &WorkspacePath, why: impl Into<String>) -> Skipped {
    Skipped {
        path: path.to_string(),
        why: why.into(),
    }
}
