//! A structure engine that reads everything anew for every question, and knows as much of Rust as a line with `fn` tells.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use regex::{Regex, RegexBuilder};
use zero_contracts::find::{
    Absence, CaseMode, Confidence, ContextLines, Coverage, FindItem, FindMode, FindOptions, FindRequest, FindResult,
    Skipped,
};
use zero_contracts::read::{EntryKind, OutlineItem};
use zero_contracts::source::WalkScope;
use zero_contracts::{
    CancelToken, Digest, Error, ErrorKind, LineRange, SourceView, StructureEngine, TextRange, WorkspacePath,
};

use super::text;
use crate::suites::structure::Structures;

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainStructure;

impl Structures for PlainStructure {
    fn engine(&self) -> Arc<dyn StructureEngine> {
        Arc::new(*self)
    }
}

fn is_rust(path: &WorkspacePath) -> bool {
    path.extension() == Some(b"rs")
}

fn expression(pattern: &str, options: &FindOptions) -> Result<Regex, Error> {
    let insensitive = match options.case_mode.unwrap_or_default() {
        CaseMode::Sensitive => false,
        CaseMode::Insensitive => true,
        CaseMode::Smart => !pattern.chars().any(char::is_uppercase),
    };
    RegexBuilder::new(pattern)
        .multi_line(true)
        .case_insensitive(insensitive)
        .build()
        .map_err(|e| Error::invalid(e.to_string()).with_path("query"))
}

/// What is looked for.
enum Wanted {
    Matches(Regex),
    Definitions(String),
    References(Regex, String),
    Paths(Regex),
}

/// A glob of `*` and plain characters.
fn glob(pattern: &str) -> Result<Regex, Error> {
    let parts: Vec<String> = pattern.split('*').map(regex::escape).collect();
    Regex::new(&format!("^{}$", parts.join("[^/]*"))).map_err(|e| Error::invalid(e.to_string()))
}

impl Wanted {
    fn of(request: &FindRequest) -> Result<Self, Error> {
        let (query, options) = (&request.query, &request.options);
        if query.is_empty() {
            return Err(Error::invalid("the query is empty").with_path("query"));
        }
        let word = || expression(&format!(r"\b{}\b", regex::escape(query)), options);
        Ok(match options.mode {
            FindMode::Text => Self::Matches(expression(&regex::escape(query), options)?),
            FindMode::Word => Self::Matches(word()?),
            FindMode::Regex => Self::Matches(expression(query, options)?),
            FindMode::Paths => Self::Paths(glob(query)?),
            FindMode::Definitions => Self::Definitions(query.clone()),
            FindMode::References => Self::References(word()?, query.clone()),
            mode => return Err(Error::new(ErrorKind::Unsupported, format!("{mode:?} is not offered"))),
        })
    }
}

/// A function: its name, and where it begins and ends.
struct Function {
    name: String,
    start: usize,
    name_at: usize,
    end: usize,
}

/// Functions that begin a line and end with a closing brace that begins one.
fn functions(source: &str) -> Vec<Function> {
    let head = Regex::new(r"(?m)^(?:pub )?fn (\w+)").ok();
    let found = head.iter().flat_map(|head| head.captures_iter(source));
    found
        .filter_map(|captures| {
            let (whole, name) = (captures.get(0)?, captures.get(1)?);
            let line_end = source[whole.start()..]
                .find('\n')
                .map_or(source.len(), |at| whole.start() + at);
            let end = if source[whole.start()..line_end].ends_with('}') {
                line_end
            } else {
                source[whole.start()..]
                    .find("\n}")
                    .map_or(source.len(), |at| whole.start() + at + 2)
            };
            Some(Function {
                name: name.as_str().to_owned(),
                start: whole.start(),
                name_at: name.start(),
                end,
            })
        })
        .collect()
}

struct Found {
    items: Vec<FindItem>,
    coverage: Coverage,
}

fn item(
    path: &WorkspacePath,
    source: &str,
    digest: Digest,
    (start, end): (usize, usize),
    options: &FindOptions,
) -> FindItem {
    let range = text::range(source, start, end);
    let lines = text::lines(source);
    let at = range.start.line as usize - 1;
    let context = options.context.map(|around| {
        let around = around as usize;
        let own = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        ContextLines {
            before: own(&lines[at.saturating_sub(around)..at]),
            after: own(&lines[(at + 1).min(lines.len())..(at + 1 + around).min(lines.len())]),
        }
    });
    FindItem {
        path: path.to_string(),
        range,
        text: lines.get(at).copied().unwrap_or_default().to_owned(),
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
        captures: BTreeMap::new(),
        context,
    }
}

fn in_file(
    wanted: &Wanted,
    path: &WorkspacePath,
    source: &str,
    digest: Digest,
    options: &FindOptions,
) -> Vec<FindItem> {
    let at = |range| item(path, source, digest, range, options);
    let defined = |name: &str| {
        let mut all = functions(source);
        all.retain(|function| function.name == name);
        all
    };
    match wanted {
        Wanted::Matches(regex) => regex
            .find_iter(source)
            .map(|hit| at((hit.start(), hit.end())))
            .collect(),
        Wanted::Paths(_) => vec![at((0, 0))],
        Wanted::Definitions(name) if is_rust(path) => defined(name)
            .into_iter()
            .map(|function| FindItem {
                symbol: Some(function.name.clone()),
                kind: Some("function".into()),
                ..at((function.start, function.end))
            })
            .collect(),
        Wanted::References(regex, name) if is_rust(path) => {
            let names: Vec<usize> = defined(name).iter().map(|function| function.name_at).collect();
            regex
                .find_iter(source)
                .filter(|hit| !names.contains(&hit.start()))
                .map(|hit| FindItem {
                    confidence: Some(Confidence::Name),
                    ..at((hit.start(), hit.end()))
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The files of a scope, in order.
fn scope(view: &dyn SourceView, options: &FindOptions, token: &CancelToken) -> Result<Vec<WorkspacePath>, Error> {
    let paths = options
        .path
        .as_ref()
        .map(zero_contracts::find::OneOrMany::as_slice)
        .unwrap_or_default();
    let found = Mutex::new(Vec::new());
    let walk = WalkScope {
        ignored: options.ignored,
        ..WalkScope::default()
    };
    view.walk(&walk, token, &|entry| {
        if entry.kind == EntryKind::File {
            found.lock().unwrap_or_else(PoisonError::into_inner).push(entry.path);
        }
        ControlFlow::Continue(())
    })?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort();
    if paths.is_empty() {
        return Ok(found);
    }
    let mut kept = Vec::new();
    for given in paths {
        let (matches, below) = (glob(given)?, format!("{given}/"));
        let before = kept.len();
        kept.extend(found.iter().filter(|path| {
            let path = path.to_string();
            matches.is_match(&path) || path.starts_with(&below)
        }));
        if kept.len() == before {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no `{given}`")).with_path(given));
        }
    }
    Ok(kept.into_iter().cloned().collect())
}

fn search(view: &dyn SourceView, request: &FindRequest, token: &CancelToken) -> Result<Found, Error> {
    let wanted = Wanted::of(request)?;
    let options = &request.options;
    if let Some(language) = options.language.as_deref().filter(|language| *language != "rust") {
        return Err(Error::invalid(format!("there is no language {language:?}"))
            .with_path("options.language")
            .with_accepted(["rust"]));
    }
    let mut found = Found {
        items: Vec::new(),
        coverage: Coverage::default(),
    };
    for path in scope(view, options, token)? {
        token.check()?;
        let other_language = options.language.is_some() && !is_rust(&path);
        let other_path = matches!(&wanted, Wanted::Paths(glob) if !glob.is_match(&path.to_string()));
        if other_language || other_path {
            continue;
        }
        found.coverage.files += 1;
        let content = view.read(&path, token)?;
        match std::str::from_utf8(&content.bytes) {
            Ok(source) if !source.contains('\0') => {
                found.coverage.read += 1;
                found
                    .items
                    .extend(in_file(&wanted, &path, source, content.digest, options));
            }
            _ => found.coverage.skipped.push(Skipped {
                path: path.to_string(),
                why: "binary".into(),
            }),
        }
    }
    Ok(found)
}

impl StructureEngine for PlainStructure {
    fn find(&self, view: &dyn SourceView, request: &FindRequest, token: &CancelToken) -> Result<FindResult, Error> {
        token.check()?;
        let found = search(view, request, token)?;
        let total = found.items.len();
        let from = match request.options.next.as_deref() {
            None => 0,
            Some(next) => next
                .parse()
                .map_err(|_| Error::invalid("`next` is not one of mine").with_path("options.next"))?,
        };
        let limit = request.options.limit.unwrap_or(100) as usize;
        let items: Vec<FindItem> = found.items.into_iter().skip(from).take(limit).collect();
        let end = from + items.len();
        let whole = found.coverage.skipped.is_empty();
        Ok(FindResult {
            total: total as u64,
            complete: end >= total && whole,
            absence: (total == 0).then_some(if whole {
                Absence::Certified
            } else {
                Absence::Uncertified
            }),
            next: (end < total).then(|| end.to_string()),
            coverage: found.coverage,
            freshness: view.freshness(),
            items,
        })
    }

    fn outline(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        token: &CancelToken,
    ) -> Result<Option<Vec<OutlineItem>>, Error> {
        token.check()?;
        if !is_rust(path) {
            return Ok(None);
        }
        let source = String::from_utf8_lossy(bytes);
        let items = functions(&source).into_iter().map(|function| {
            let range = text::range(&source, function.start, function.end);
            Ok(OutlineItem {
                symbol: function.name,
                kind: "function".into(),
                lines: LineRange::new(range.start.line, range.end.line)?,
                signature: None,
            })
        });
        items.collect::<Result<_, Error>>().map(Some)
    }

    fn symbol(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        symbol: &str,
        token: &CancelToken,
    ) -> Result<Vec<TextRange>, Error> {
        token.check()?;
        if !is_rust(path) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("the language of `{path}` is not known"),
            ));
        }
        let source = String::from_utf8_lossy(bytes);
        Ok(functions(&source)
            .into_iter()
            .filter(|function| function.name == symbol)
            .map(|function| text::range(&source, function.start, function.end))
            .collect())
    }

    fn syntax_errors(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        token: &CancelToken,
    ) -> Result<Option<Vec<TextRange>>, Error> {
        token.check()?;
        if !is_rust(path) {
            return Ok(None);
        }
        let source = String::from_utf8_lossy(bytes);
        let balanced = [("(", ")"), ("{", "}")]
            .iter()
            .all(|(open, close)| source.matches(open).count() == source.matches(close).count());
        let whole = || vec![text::range(&source, 0, source.len())];
        Ok(Some(if balanced { Vec::new() } else { whole() }))
    }
}
