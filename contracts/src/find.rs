//! `z.find`: text and structure, with stated coverage.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::json::union_forms;
use crate::read::is_false;
use crate::{Digest, TextRange};

/// `z.find(query, options?)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FindRequest {
    /// What to look for; its meaning depends on the mode.
    pub query: String,
    /// How and where.
    #[serde(default)]
    pub options: FindOptions,
}

/// Options of `z.find`.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FindOptions {
    /// What kind of answer.
    pub mode: FindMode,
    /// Scope: files, directories or globs; default the whole workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<OneOrMany>,
    /// Only files of this language, by its lowercase name such as `rust`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// At most this many items a page (default 100).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Go on where an earlier answer stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Lines of context around a text match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// How letters compare; default `sensitive`.
    #[serde(rename = "case", skip_serializing_if = "Option::is_none")]
    pub case_mode: Option<CaseMode>,
    /// Look into what ignore rules exclude, too.
    #[serde(skip_serializing_if = "is_false")]
    pub ignored: bool,
    /// How many steps `impact`, `callers`, `callees` and `callPath` follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// `callPath`: the other symbol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// One string, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(remote = "Self", untagged, expecting = "expected a string, or an array of strings")]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

union_forms!(OneOrMany);

impl OneOrMany {
    /// Returns all of them.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

/// What kind of answer `z.find` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub enum FindMode {
    /// Literal text.
    #[default]
    Text,
    /// Literal text between word boundaries.
    Word,
    /// A regular expression of ripgrep's syntax.
    Regex,
    /// File paths: a glob, or text inside the path.
    Paths,
    /// A piece of code with metavariables (`$NAME`, `$$$NAME`).
    Pattern,
    /// Symbols whose name contains the query.
    Symbols,
    /// Definitions of a name or qualified tail.
    Definitions,
    /// Uses of a symbol, one item per site.
    References,
    /// Call sites of a function, one item per site.
    Callers,
    /// What a function calls.
    Callees,
    /// What a file or module imports.
    Imports,
    /// Who imports a module or symbol.
    Importers,
    /// Everything that depends on a symbol or file, transitively.
    Impact,
    /// A shortest chain of calls from one symbol to another.
    CallPath,
    /// Ranked by words of names, documentation and signatures.
    Semantic,
}

/// How letters compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum CaseMode {
    /// Exactly.
    #[default]
    Sensitive,
    /// Without regard to case.
    Insensitive,
    /// Insensitive unless the query has a capital letter.
    Smart,
}

/// What `z.find` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct FindResult {
    /// The items of this page, ordered by path and place (ranked modes: by score).
    pub items: Vec<FindItem>,
    /// How many items there are in all pages.
    pub total: u64,
    /// Whether this page ends the answer and every file in scope was covered.
    pub complete: bool,
    /// What was looked at.
    pub coverage: Coverage,
    /// Whether an unfinished cell's changes may be among what was read.
    pub freshness: Freshness,
    /// With zero items: whether their absence is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absence: Option<Absence>,
    /// Reads the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One thing found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct FindItem {
    /// The file: a workspace path, or `mount:NAME/path`.
    pub path: String,
    /// Where in it.
    pub range: TextRange,
    /// The line or lines it stands on, without the last line end.
    pub text: String,
    /// Digest of the file's bytes: can guard an edit.
    pub digest: Digest,
    /// Qualified symbol, such as `module::Type::method`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Kind of the symbol, or of the use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What the symbol lies in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// How sure a structural answer is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// For a use: where what it refers to is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionSite>,
    /// Further places where what it refers to may be defined: copies under other configurations, overloads, candidates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<DefinitionSite>,
    /// For impact and call paths: the chain of evidence, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<String>,
    /// Whether the item lies in a test.
    #[serde(default, skip_serializing_if = "is_false")]
    pub test: bool,
    /// For ranked modes: the score, greater is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// For patterns: what each metavariable matched.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub captures: BTreeMap<String, String>,
    /// Lines around a text match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextLines>,
}

/// Lines around a text match, without line ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct ContextLines {
    /// Lines before.
    pub before: Vec<String>,
    /// Lines after.
    pub after: Vec<String>,
}

/// Where something is defined.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct DefinitionSite {
    /// The file.
    pub path: String,
    /// Line of the name, 1-based.
    pub line: u64,
    /// Column of the name in Unicode scalar values, 1-based.
    pub column: u64,
}

/// How sure a structural answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Resolved through scopes, imports and types without a gap.
    Exact,
    /// Resolved to a small set of candidates by scope or type bounds.
    Scoped,
    /// Only the name agrees.
    Name,
}

/// What an answer looked at.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", default)]
pub struct Coverage {
    /// Files in scope.
    pub files: u64,
    /// Files read at their present content.
    pub read: u64,
    /// Files parsed.
    pub parsed: u64,
    /// Parsed files that have syntax errors.
    pub with_errors: u64,
    /// Files in a language without a grammar.
    pub unknown_language: u64,
    /// Files that were left out, each with the reason.
    pub skipped: Vec<Skipped>,
}

/// A file that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct Skipped {
    /// The file.
    pub path: String,
    /// Why: `binary`, `too_large`, `unreadable: …`, `changed`; where nothing was found, `syntax_errors`, `unknown_language` and
    /// `unresolved_mention`, which tell that the file mentions what was asked for in a way that is not understood;
    /// `matches_no_file` of a glob of the scope, which stands here itself.
    pub why: String,
}

/// Whether an unfinished cell's changes may be among what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum Freshness {
    /// The present content, with this cell's staged effects.
    #[default]
    Present,
    /// Another cell's publication is under way.
    Uncommitted,
}

/// Whether zero items mean that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// Every file in scope was read (and parsed where needed) at its present content, and none matched.
    Certified,
    /// Coverage says which files fell short and why.
    Uncertified,
}
