//! Text, word and regex search with ripgrep's libraries, and search in paths.
//!
//! Every file in scope is read at its present content, in pieces and without a digest; those whose matches are shown are read
//! again through [`SourceView::read`], whose bytes and digest are of one instant, and have to match as before.

use std::cell::RefCell;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use zero_contracts::find::{CaseMode, ContextLines, Coverage, FindItem, FindMode, FindRequest, FindResult, Skipped};
use zero_contracts::source::Entry;
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, SourceView, WorkspacePath};

use crate::answer::{self, Page};
use crate::cursor::Binding;
use crate::facts::Span;
use crate::language;
use crate::scope::Scope;
use crate::tree::{HELD_BYTES, TOO_LARGE};
use crate::{pool, tree};

/// Bytes that a compiled pattern may take, and its automaton again.
const REGEX_BYTES: usize = 4 << 20;

/// Matches that one answer counts at most: each is remembered while the query runs.
const MOST_MATCHES: usize = 4_000_000;

/// What one file came to.
enum Outcome {
    Nothing,
    Gone,
    Skipped(Skipped),
    Found(Vec<Span>),
}

/// Answers a text, word or regex query.
///
/// # Errors
/// `invalid_input` for an empty query or a malformed expression; errors of scope, cursor and view.
pub fn find(
    view: &dyn SourceView,
    request: &FindRequest,
    scope: &Scope,
    threads: usize,
    token: &CancelToken,
) -> Result<FindResult, Error> {
    let matcher = matcher(request)?;
    let (entries, mut skipped) = tree::entries(view, scope, token)?;
    let room = AtomicUsize::new(MOST_MATCHES);
    let outcomes = pool::map(
        entries.len(),
        threads,
        token,
        || RefCell::new(Vec::new()),
        |buffer, index| search(view, &entries[index], &matcher, buffer, &room, token),
    )?;
    let mut coverage = Coverage {
        files: entries.len() as u64,
        ..Coverage::default()
    };
    let mut found: Vec<(&Entry, Vec<Span>)> = Vec::new();
    for (entry, outcome) in entries.iter().zip(outcomes) {
        coverage.unknown_language += u64::from(language::of_path(&entry.path).is_none());
        match outcome {
            Outcome::Nothing => coverage.read += 1,
            Outcome::Gone => coverage.files -= 1,
            Outcome::Skipped(skip) => skipped.push(skip),
            Outcome::Found(spans) => {
                coverage.read += 1;
                found.push((entry, spans));
            }
        }
    }
    skipped.sort_by(|a, b| a.path.cmp(&b.path));
    coverage.skipped = skipped;
    let total = found.iter().map(|(_, spans)| spans.len()).sum();
    let page = Page::cut(request, Binding::new(request, fingerprint(&entries)), total)?;
    let (mut items, mut at) = (Vec::new(), 0);
    for (entry, spans) in found {
        let (from, to) = (page.from.max(at), page.to.min(at + spans.len()));
        if from < to {
            // What is shown comes from bytes and a digest of one instant.
            let content = view.read(&entry.path, token).map_err(|error| match error.kind {
                ErrorKind::NotFound => answer::changed(&entry.path),
                _ => error,
            })?;
            if self::spans(&matcher, &content.bytes, MOST_MATCHES, token)? != spans {
                return Err(answer::changed(&entry.path));
            }
            for span in &spans[from - at..to - at] {
                items.push(item(
                    &entry.path,
                    &content.bytes,
                    content.digest,
                    *span,
                    request.options.context,
                ));
            }
        }
        at += spans.len();
    }
    let certain = coverage.skipped.is_empty();
    Ok(page.result(view, items, coverage, certain))
}

/// Fingerprints a list of entries by path and stamp.
pub fn fingerprint<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> Digest {
    let mut bytes = Vec::new();
    for entry in entries {
        bytes.extend_from_slice(entry.path.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(&entry.stamp.value.to_le_bytes());
    }
    Digest::of(&bytes)
}

/// Builds the matcher of a request.
fn matcher(request: &FindRequest) -> Result<RegexMatcher, Error> {
    let query = &request.query;
    if query.is_empty() {
        return Err(Error::invalid("the query is empty").with_path("query"));
    }
    let literal = request.options.mode != FindMode::Regex;
    let mut builder = RegexMatcherBuilder::new();
    // Compiling cannot be cancelled, so its size is bounded: a larger pattern is `invalid_input`, not a minute's wait.
    builder.size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES);
    match request.options.case_mode.unwrap_or_default() {
        CaseMode::Sensitive => {}
        CaseMode::Insensitive => {
            builder.case_insensitive(true);
        }
        CaseMode::Smart => {
            builder.case_smart(true);
        }
    }
    builder
        .fixed_strings(literal)
        .word(request.options.mode == FindMode::Word)
        .multi_line(true);
    // Line by line is faster; an expression that can match a line end needs the whole text at once.
    let lines = !query.contains('\n');
    if lines {
        builder.line_terminator(Some(b'\n'));
    }
    let built = builder.build(query).or_else(|error| {
        if lines {
            builder.line_terminator(None).build(query)
        } else {
            Err(error)
        }
    });
    built.map_err(|error| Error::invalid(format!("the expression is malformed: {error}")).with_path("query"))
}

/// Searches one file.
fn search(
    view: &dyn SourceView,
    entry: &Entry,
    matcher: &RegexMatcher,
    buffer: &RefCell<Vec<u8>>,
    room: &AtomicUsize,
    token: &CancelToken,
) -> Result<Outcome, Error> {
    let fail = |error: Error| match error.kind {
        ErrorKind::Cancelled | ErrorKind::Deadline => Err(error),
        ErrorKind::NotFound => Ok(Outcome::Gone),
        ErrorKind::Conflict => Ok(Outcome::Skipped(answer::skip(&entry.path, "changed"))),
        _ => Ok(Outcome::Skipped(answer::skip(
            &entry.path,
            format!("unreadable: {}", error.detail),
        ))),
    };
    if entry.bytes > HELD_BYTES {
        return Ok(Outcome::Skipped(answer::skip(&entry.path, TOO_LARGE)));
    }
    let mut buffer = buffer.borrow_mut();
    buffer.clear();
    let read = view.open(&entry.path).and_then(|file| {
        buffer.reserve(entry.bytes as usize + 1);
        // It may have grown since it was listed.
        file.take(HELD_BYTES + 1)
            .read_to_end(&mut buffer)
            .map_err(|e| Error::from_io(&e, format!("reading `{}`", entry.path)))
    });
    match read {
        Ok(length) if length as u64 > HELD_BYTES => {
            return Ok(Outcome::Skipped(answer::skip(&entry.path, TOO_LARGE)));
        }
        // A length that differs from the entry's shows a change meanwhile: then the exact read below decides.
        Ok(length) if length as u64 == entry.bytes => {
            if memchr::memchr(0, &buffer).is_some() {
                return Ok(Outcome::Skipped(answer::skip(&entry.path, "binary")));
            }
            return outcome(matcher, &buffer, room, token);
        }
        Ok(_) => {}
        Err(error) => return fail(error),
    }
    let content = match view.read(&entry.path, token) {
        Ok(content) => content,
        Err(error) => return fail(error),
    };
    if memchr::memchr(0, &content.bytes).is_some() {
        return Ok(Outcome::Skipped(answer::skip(&entry.path, "binary")));
    }
    outcome(matcher, &content.bytes, room, token)
}

fn outcome(matcher: &RegexMatcher, bytes: &[u8], room: &AtomicUsize, token: &CancelToken) -> Result<Outcome, Error> {
    let spans = spans(matcher, bytes, room.load(Ordering::Relaxed), token)?;
    let taken = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
        left.checked_sub(spans.len())
    });
    if taken.is_err() {
        return Err(too_many());
    }
    Ok(if spans.is_empty() {
        Outcome::Nothing
    } else {
        Outcome::Found(spans)
    })
}

fn too_many() -> Error {
    Error::new(
        ErrorKind::Budget,
        format!("there are more than {MOST_MATCHES} matches: narrow the query or its `path`"),
    )
    .with_path("query")
}

/// Returns where a matcher matches, if that is at most so often.
fn spans(matcher: &RegexMatcher, bytes: &[u8], most: usize, token: &CancelToken) -> Result<Vec<Span>, Error> {
    let mut spans = Vec::new();
    matcher
        .find_iter(bytes, |found| {
            spans.push(Span {
                start: found.start() as u32,
                end: found.end() as u32,
            });
            spans.len() <= most && (spans.len() % 1024 != 0 || token.check().is_ok())
        })
        .map_err(|e| Error::new(ErrorKind::Internal, e.to_string()))?;
    token.check()?;
    if spans.len() > most {
        return Err(too_many());
    }
    Ok(spans)
}

fn item(path: &WorkspacePath, bytes: &[u8], digest: Digest, span: Span, context: Option<u32>) -> FindItem {
    FindItem {
        path: path.to_string(),
        range: answer::range(bytes, span),
        text: answer::line_text(bytes, span),
        digest,
        symbol: None,
        kind: None,
        container: None,
        confidence: None,
        definition: None,
        alternatives: Vec::new(),
        via: Vec::new(),
        test: false,
        score: None,
        captures: Default::default(),
        context: context
            .filter(|&lines| lines > 0)
            .map(|lines| surroundings(bytes, span, lines as usize)),
    }
}

/// Returns the lines around the lines of a match.
fn surroundings(bytes: &[u8], span: Span, lines: usize) -> ContextLines {
    let line = |bytes: &[u8]| {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        String::from_utf8_lossy(bytes).into_owned()
    };
    let from = memchr::memrchr(b'\n', &bytes[..span.start as usize]).map_or(0, |newline| newline + 1);
    let mut before: Vec<String> = match from.checked_sub(1) {
        Some(end) => bytes[..end].rsplit(|&b| b == b'\n').take(lines).map(line).collect(),
        None => Vec::new(),
    };
    before.reverse();
    let last = (span.end as usize).saturating_sub(1).max(span.start as usize);
    let after = match memchr::memchr(b'\n', &bytes[last..]) {
        Some(newline) if last + newline + 1 < bytes.len() => {
            let rest = &bytes[last + newline + 1..];
            let rest = rest.strip_suffix(b"\n").unwrap_or(rest);
            rest.split(|&b| b == b'\n').take(lines).map(line).collect()
        }
        _ => Vec::new(),
    };
    ContextLines { before, after }
}

/// Answers a query for paths: a glob, or text inside the path.
///
/// # Errors
/// As for [`find`].
pub fn find_paths(
    view: &dyn SourceView,
    request: &FindRequest,
    scope: &Scope,
    token: &CancelToken,
) -> Result<FindResult, Error> {
    let query = &request.query;
    if query.is_empty() {
        return Err(Error::invalid("the query is empty").with_path("query"));
    }
    let insensitive = match request.options.case_mode.unwrap_or_default() {
        CaseMode::Sensitive => false,
        CaseMode::Insensitive => true,
        CaseMode::Smart => !query.chars().any(char::is_uppercase),
    };
    let fold = |text: &str| {
        if insensitive {
            text.to_lowercase()
        } else {
            text.to_owned()
        }
    };
    let glob = if query.contains(['*', '?', '[', '{']) {
        Some(
            crate::scope::glob(&fold(query))
                .map_err(|e| e.with_path("query"))?
                .compile_matcher(),
        )
    } else {
        None
    };
    let wanted = fold(query);
    let (entries, skipped) = tree::entries(view, scope, token)?;
    let found: Vec<&Entry> = entries
        .iter()
        .filter(|entry| {
            let path = fold(&entry.path.to_string());
            glob.as_ref()
                .map_or_else(|| path.contains(&wanted), |glob| glob.is_match(&path))
        })
        .collect();
    let page = Page::cut(request, Binding::new(request, fingerprint(&entries)), found.len())?;
    let mut coverage = Coverage {
        files: entries.len() as u64,
        skipped,
        ..Coverage::default()
    };
    coverage.unknown_language = entries.iter().filter(|e| language::of_path(&e.path).is_none()).count() as u64;
    let mut items = Vec::new();
    for entry in &found[page.from..page.to] {
        let digest = tree::digest(view, entry, token)?;
        let mut item = item(&entry.path, &[], digest, Span::default(), None);
        item.kind = Some("file".into());
        item.text = entry.path.to_string();
        items.push(item);
    }
    let certain = coverage.skipped.is_empty();
    Ok(page.result(view, items, coverage, certain))
}
