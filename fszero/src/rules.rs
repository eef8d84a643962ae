//! Ignore rules: `.gitignore` and `.ignore` of every directory, `.git/info/exclude`, and git's global excludes.
//!
//! `.ignore` goes before `.gitignore`, a deeper file before a shallower one, a later line before an earlier one; an
//! ignored directory hides everything in it. Rule files are read through a view, so staged ones count. The matcher is
//! the `ignore` crate's; only the global excludes are read from outside the root.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use zero_contracts::WorkspacePath;

/// Names of the rule files, weakest first.
pub(crate) const RULE_FILES: [&[u8]; 2] = [b".gitignore", b".ignore"];

/// The repository's own rules, which are in no rule file.
pub(crate) const EXCLUDE: &[u8] = b".git/info/exclude";

/// A rule file of more bytes than this holds no rules (git has such a limit, too): compiling it would take longer than any
/// cell may, and compiling cannot be cut short.
pub(crate) const RULE_BYTES: u64 = 1 << 20;

/// A rule of more bytes is none: no path that it could name is as long.
const LINE_BYTES: usize = 8 << 10;

/// Texts of rule files as they were once, by path; none where there was no file.
pub(crate) type Overrides = BTreeMap<WorkspacePath, Option<Vec<u8>>>;

/// Tells whether a path holds rules.
pub(crate) fn is_rules(path: &WorkspacePath) -> bool {
    path.as_bytes() == EXCLUDE || path.file_name().is_some_and(|name| RULE_FILES.contains(&name))
}

/// The rules of one directory and all above it.
#[derive(Clone)]
pub(crate) struct Rules(Arc<Level>);

struct Level {
    above: Option<Arc<Level>>,
    /// Length of the directory's path with the slash behind it.
    prefix: usize,
    /// In the order of [`RULE_FILES`].
    files: [Option<Gitignore>; 2],
    /// Only at the root: `.git/info/exclude`, then the global excludes.
    base: Option<(Option<Gitignore>, Arc<Gitignore>)>,
}

fn parse(text: &[u8]) -> Option<Gitignore> {
    if text.len() as u64 > RULE_BYTES {
        return None;
    }
    let mut builder = GitignoreBuilder::new("");
    for line in text.split(|&b| b == b'\n').filter(|line| line.len() <= LINE_BYTES) {
        // A line that is no valid glob is skipped, as git does.
        let line = String::from_utf8_lossy(line);
        let _ = builder.add_line(None, line.strip_suffix('\r').unwrap_or(&line));
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

fn global() -> Arc<Gitignore> {
    static GLOBAL: OnceLock<Arc<Gitignore>> = OnceLock::new();
    Arc::clone(GLOBAL.get_or_init(|| Arc::new(GitignoreBuilder::new("").build_global().0)))
}

impl Rules {
    /// The rules at the root, given the text of `.git/info/exclude`.
    pub fn root(exclude: Option<&[u8]>) -> Self {
        Self(Arc::new(Level {
            above: None,
            prefix: 0,
            files: [None, None],
            base: Some((exclude.and_then(parse), global())),
        }))
    }

    /// The rules inside a directory that has these rule files (in the order of [`RULE_FILES`]).
    pub fn enter(&self, directory: &WorkspacePath, texts: [Option<Vec<u8>>; 2]) -> Self {
        let files = texts.map(|text| text.as_deref().and_then(parse));
        if files.iter().all(Option::is_none) {
            return self.clone();
        }
        let prefix = if directory.is_root() {
            0
        } else {
            directory.as_bytes().len() + 1
        };
        Self(Arc::new(Level {
            above: Some(Arc::clone(&self.0)),
            prefix,
            files,
            base: None,
        }))
    }

    /// Tells whether an entry is ignored, given that no directory above it is.
    pub fn ignores(&self, path: &WorkspacePath, directory: bool) -> bool {
        let verdict = |rules: &Gitignore, prefix: usize| {
            let relative = Path::new(OsStr::from_bytes(path.as_bytes().get(prefix..).unwrap_or_default()));
            match rules.matched(relative, directory) {
                Match::Ignore(_) => Some(true),
                Match::Whitelist(_) => Some(false),
                Match::None => None,
            }
        };
        for which in (0..RULE_FILES.len()).rev() {
            let mut level = Some(&self.0);
            while let Some(here) = level {
                if let Some(answer) = here.files[which].as_ref().and_then(|rules| verdict(rules, here.prefix)) {
                    return answer;
                }
                if which == 0
                    && let Some((exclude, global)) = &here.base
                {
                    let exclude = exclude.as_ref().and_then(|rules| verdict(rules, 0));
                    return exclude.or_else(|| verdict(global, 0)).unwrap_or(false);
                }
                level = here.above.as_ref();
            }
        }
        false
    }
}
