//! Where a query looks: the `path` option as starting points and globs.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use zero_contracts::find::{FindOptions, OneOrMany};
use zero_contracts::read::EntryKind;
use zero_contracts::source::Entry;
use zero_contracts::{CancelToken, Error, ErrorKind, SourceView, WorkspacePath};

use crate::language::{self, Lang};

/// The scope of one query.
#[derive(Debug)]
pub struct Scope {
    /// Where walks start; each path was found to exist.
    pub starts: Vec<Start>,
    globs: Option<GlobSet>,
    plain: Vec<WorkspacePath>,
    language: Option<Lang>,
    /// Whether ignored files are looked into.
    pub ignored: bool,
}

/// One starting point.
#[derive(Clone, Debug)]
pub struct Start {
    /// What the caller named, or the directory that every match of a glob lies in.
    pub path: WorkspacePath,
    /// For a symlink that was named: the file or directory it leads to.
    pub target: WorkspacePath,
}

impl Scope {
    /// Reads the scope of a request.
    ///
    /// # Errors
    /// `invalid_input` for a malformed glob or an unknown language, `not_found` for a plain path without an entry;
    /// errors of the view.
    pub fn read(options: &FindOptions, view: &dyn SourceView, token: &CancelToken) -> Result<Self, Error> {
        let language = options.language.as_deref().map(language::by_name).transpose()?;
        let mut scope = Self {
            starts: Vec::new(),
            globs: None,
            plain: Vec::new(),
            language,
            ignored: options.ignored,
        };
        let paths = options.path.as_ref().map_or(&[][..], OneOrMany::as_slice);
        let mut globs = GlobSetBuilder::new();
        let mut any_glob = false;
        for text in paths {
            token.check()?;
            match text.parse::<WorkspacePath>() {
                Ok(path) => match view.entry(&path) {
                    Ok(Some(entry)) => {
                        let target = follow(view, entry)?;
                        if matches!(view.entry(&target), Ok(Some(entry)) if entry.kind == EntryKind::Other) {
                            return Err(
                                Error::invalid(format!("the scope `{text}` is no file or directory")).with_path(text)
                            );
                        }
                        // Text is found under the name that was given, structure under the file's own.
                        scope.plain.extend([path.clone(), target.clone()]);
                        scope.starts.push(Start { path, target });
                        continue;
                    }
                    Ok(None) if !is_glob(text) => {
                        return Err(
                            Error::new(ErrorKind::NotFound, format!("the scope `{text}` does not exist"))
                                .with_path(text),
                        );
                    }
                    Ok(None) => {}
                    Err(error) => return Err(error),
                },
                Err(error) if !is_glob(text) => return Err(error),
                Err(_) => {}
            }
            if text.starts_with('/') || text.split('/').any(|part| part == "..") {
                return Err(Error::new(
                    ErrorKind::OutsideWorkspace,
                    format!("`{text}`: a glob is relative to the workspace root and has no `..`"),
                )
                .with_path(text));
            }
            globs.add(glob(text)?);
            any_glob = true;
            let start = glob_start(text);
            if matches!(view.entry(&start), Ok(Some(entry)) if entry.kind == EntryKind::Symlink) {
                return Err(Error::invalid(format!(
                    "`{text}`: a glob does not follow the symlink `{start}`; name what it leads to"
                ))
                .with_path(text));
            }
            if matches!(view.entry(&start), Ok(Some(entry)) if entry.kind == EntryKind::Directory) {
                scope.starts.push(Start {
                    target: start.clone(),
                    path: start,
                });
            }
        }
        if any_glob {
            let set = globs
                .build()
                .map_err(|e| Error::invalid(e.to_string()).with_path("options.path"))?;
            scope.globs = Some(set);
        }
        if paths.is_empty() {
            scope.starts.push(Start {
                path: WorkspacePath::root(),
                target: WorkspacePath::root(),
            });
        }
        scope.starts.sort_by(|a, b| a.path.cmp(&b.path));
        scope.starts.dedup_by(|a, b| a.path == b.path);
        Ok(scope)
    }

    /// Tells whether a file is in scope.
    pub fn contains(&self, path: &WorkspacePath) -> bool {
        if let Some(wanted) = self.language
            && language::of_path(path).map(|(_, lang)| lang) != Some(wanted)
        {
            return false;
        }
        if self.globs.is_none() && self.plain.is_empty() {
            return true;
        }
        self.plain.iter().any(|plain| path.is_within(plain))
            || self
                .globs
                .as_ref()
                .is_some_and(|globs| globs.is_match(path.to_string()))
    }

    /// Tells whether the whole tree is in scope, whatever the language.
    pub fn is_whole(&self) -> bool {
        self.plain.is_empty() && self.globs.is_none()
    }
}

/// Follows a symlink to the entry it leads to.
fn follow(view: &dyn SourceView, entry: Entry) -> Result<WorkspacePath, Error> {
    if entry.kind != EntryKind::Symlink {
        return Ok(entry.path);
    }
    let path = entry.path;
    view.resolve(&path)?
        .map(|target| target.path)
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("the symlink `{path}` leads nowhere")).with_path(&path))
}

fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// Compiles one glob: `*` stays inside a directory, `**` crosses them, and a glob without `/` matches file names.
///
/// # Errors
/// `invalid_input`.
pub fn glob(text: &str) -> Result<globset::Glob, Error> {
    let text = text.strip_prefix("./").unwrap_or(text);
    let whole = if text.contains('/') {
        text.trim_start_matches('/').to_owned()
    } else {
        format!("**/{text}")
    };
    GlobBuilder::new(&whole)
        .literal_separator(true)
        .build()
        .map_err(|e| Error::invalid(format!("`{text}` is no glob: {}", e.kind())).with_path("options.path"))
}

/// Returns the directory that every match of a glob lies in.
fn glob_start(text: &str) -> WorkspacePath {
    let text = text.strip_prefix("./").unwrap_or(text);
    let literal: Vec<&str> = text.split('/').take_while(|part| !is_glob(part)).collect();
    let whole = literal.len() == text.split('/').count();
    let keep = if whole {
        literal.len().saturating_sub(1)
    } else {
        literal.len()
    };
    WorkspacePath::from_raw(literal[..keep].join("/").as_bytes()).unwrap_or_default()
}
