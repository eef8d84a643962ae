//! `z.edit`: one change of one file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::json::{Refused, union_forms};
use crate::{Content, Digest, Error, Handle, LineRange, WorkspacePath};

/// `z.edit(target, change, options?)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditRequest {
    /// A workspace path, or the snapshot of one file.
    pub target: String,
    /// What to change.
    pub change: Change,
    /// Guards.
    #[serde(default)]
    pub options: EditOptions,
}

/// Options of `z.edit`.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EditOptions {
    /// What the file must be now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}

/// What a file must be for a change to go ahead.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Expect {
    /// Whatever it is: `"any"`.
    Any,
    /// Exactly these bytes: a digest, or a blob handle.
    Digest(Digest),
    /// What a snapshot of the file recorded.
    Snapshot(Handle),
}

impl TryFrom<String> for Expect {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        if text == "any" {
            return Ok(Self::Any);
        }
        if let Ok(digest) = text.parse() {
            return Ok(Self::Digest(digest));
        }
        match text.parse::<Handle>() {
            Ok(handle) if handle.kind == crate::HandleKind::Blob => Ok(Self::Digest(handle.digest)),
            Ok(handle) if handle.kind == crate::HandleKind::Snapshot => Ok(Self::Snapshot(handle)),
            _ => Err(Error::invalid(format!("`{text}` cannot guard an edit"))
                .with_path("expect")
                .with_accepted([
                    "\"any\"",
                    "a digest (64 hexadecimal digits)",
                    "z://blob/<64 hexadecimal digits>",
                    "z://snapshot/<64 hexadecimal digits>",
                ])),
        }
    }
}

impl From<Expect> for String {
    fn from(expect: Expect) -> Self {
        match expect {
            Expect::Any => "any".into(),
            Expect::Digest(digest) => digest.to_string(),
            Expect::Snapshot(handle) => handle.to_string(),
        }
    }
}

/// How many matches a replacement expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Count {
    /// Exactly one: nothing was said.
    #[default]
    One,
    /// Exactly this many (at least 1).
    Exactly(u64),
    /// Every one, at least one: `"all"`.
    All,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", untagged, expecting = "expected a number from 1, or \"all\"")]
enum CountForm {
    Number(u64),
    Word(String),
}

union_forms!(CountForm);

/// Where an insertion goes: beside a line by number, or beside text that occurs once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(
    remote = "Self",
    untagged,
    expecting = "expected a line number, or text (or bytes) that occurs once"
)]
pub enum Anchor {
    /// A line, 1-based.
    Line(u64),
    /// Literal text or bytes that occur exactly once.
    Text(Content),
}

union_forms!(Anchor);

/// One change of one file. What it does not name is kept: byte order mark, newline style, final newline, mode.
///
/// Where a form takes [`Content`], text is *text*: in a file whose lines all end in `\r\n`, its lone `\n` stands for that,
/// and a file's byte order mark stays without being named. Bytes are taken exactly as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ChangeFields", into = "ChangeFields")]
pub enum Change {
    /// Replace literal text: `{find, replacement, count?}`.
    Replace {
        /// Literal text or bytes to look for; neither empty nor white space only.
        find: Content,
        /// Literal text or bytes in its place.
        replacement: Content,
        /// How many matches there must be.
        count: Count,
    },
    /// Replace whole lines: `{lines, content}`.
    Lines {
        /// Which.
        lines: LineRange,
        /// What stands there instead; a missing last line end is added where lines follow. Empty text removes them.
        content: Content,
    },
    /// Insert before: `{insertBefore, content}`.
    InsertBefore {
        /// The line, or the line that holds the text.
        anchor: Anchor,
        /// Whole lines to insert.
        content: Content,
    },
    /// Insert after: `{insertAfter, content}`.
    InsertAfter {
        /// The line (0: before the first), or the line that holds the text.
        anchor: Anchor,
        /// Whole lines to insert.
        content: Content,
    },
    /// Apply a unified diff with exact context: `{patch}`.
    Patch {
        /// The diff of one file; only its hunks matter. A hunk whose lines are not where its header says goes to the one
        /// place where they are; where there are several or none it is a `conflict`.
        patch: Content,
    },
    /// Replace everything: `{content}`.
    Content {
        /// The whole new content. Text leaves the file's byte order mark and newline style as they are; its end is the
        /// file's end, with a final newline or without.
        content: Content,
    },
    /// Create a file that must be absent: `{create}`.
    Create {
        /// Its content.
        create: Content,
    },
    /// Remove a file, symlink or empty directory: `{remove: true}`.
    Remove,
    /// Set the permission bits: `{mode}`.
    Mode {
        /// Permission bits, at most 0o7777.
        mode: u32,
    },
}

impl Change {
    /// The accepted forms, for error messages.
    pub const FORMS: [&'static str; 9] = [
        "{find, replacement, count?}",
        "{lines: [first, last], content}",
        "{insertBefore: line or text, content}",
        "{insertAfter: line or text, content}",
        "{patch}",
        "{content}",
        "{create}",
        "{remove: true}",
        "{mode}",
    ];
}

/// The fields of all changes together, as JSON gives them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "an object")]
struct ChangeFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    find: Option<Content>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replacement: Option<Content>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<CountForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<LineRange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    insert_before: Option<Anchor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    insert_after: Option<Anchor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<Content>,
    #[serde(skip_serializing_if = "Option::is_none")]
    create: Option<Content>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remove: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
}

impl TryFrom<CountForm> for Count {
    type Error = Error;

    fn try_from(form: CountForm) -> Result<Self, Error> {
        match form {
            CountForm::Number(n) if n > 0 => Ok(Self::Exactly(n)),
            CountForm::Word(word) if word == "all" => Ok(Self::All),
            _ => Err(Error::invalid("`count` is not a number of matches")
                .with_path("count")
                .with_accepted(["a number from 1", "\"all\""])),
        }
    }
}

impl TryFrom<ChangeFields> for Change {
    type Error = Refused;

    fn try_from(fields: ChangeFields) -> Result<Self, Refused> {
        Self::from_fields(fields).map_err(Refused::from)
    }
}

impl Change {
    fn from_fields(fields: ChangeFields) -> Result<Self, Error> {
        let no_form = || Error::invalid("a change is exactly one of the accepted forms").with_accepted(Self::FORMS);
        let given = fields.clone();
        let change = match fields {
            ChangeFields {
                find: Some(find),
                replacement: Some(replacement),
                count,
                ..
            } => {
                if find.is_blank() {
                    return Err(
                        Error::invalid("`find` is empty or white space only: it would match nearly anywhere")
                            .with_path("find"),
                    );
                }
                Self::Replace {
                    find,
                    replacement,
                    count: count.map_or(Ok(Count::One), Count::try_from)?,
                }
            }
            ChangeFields {
                lines: Some(lines),
                content: Some(content),
                ..
            } => Self::Lines { lines, content },
            ChangeFields {
                insert_before: Some(anchor),
                content: Some(content),
                ..
            } => Self::InsertBefore {
                anchor: anchor.checked("insertBefore", 1)?,
                content,
            },
            ChangeFields {
                insert_after: Some(anchor),
                content: Some(content),
                ..
            } => Self::InsertAfter {
                anchor: anchor.checked("insertAfter", 0)?,
                content,
            },
            ChangeFields { patch: Some(patch), .. } => Self::Patch { patch },
            ChangeFields {
                content: Some(content), ..
            } => Self::Content { content },
            ChangeFields {
                create: Some(create), ..
            } => Self::Create { create },
            ChangeFields { remove: Some(true), .. } => Self::Remove,
            ChangeFields {
                mode: Some(mode @ 0..=0o7777),
                ..
            } => Self::Mode { mode },
            ChangeFields { mode: Some(mode), .. } => {
                return Err(Error::invalid(format!(
                    "`mode` {mode:#o} is more than permission bits (at most 0o7777)"
                ))
                .with_path("mode"));
            }
            _ => return Err(no_form()),
        };
        // A field that the form does not have is missing when the form is written again.
        if ChangeFields::from(change.clone()) == given {
            Ok(change)
        } else {
            Err(no_form())
        }
    }
}

impl From<Change> for ChangeFields {
    fn from(change: Change) -> Self {
        let none = Self::default();
        match change {
            Change::Replace {
                find,
                replacement,
                count,
            } => Self {
                find: Some(find),
                replacement: Some(replacement),
                count: match count {
                    Count::One => None,
                    Count::Exactly(n) => Some(CountForm::Number(n)),
                    Count::All => Some(CountForm::Word("all".into())),
                },
                ..none
            },
            Change::Lines { lines, content } => Self {
                lines: Some(lines),
                content: Some(content),
                ..none
            },
            Change::InsertBefore { anchor, content } => Self {
                insert_before: Some(anchor),
                content: Some(content),
                ..none
            },
            Change::InsertAfter { anchor, content } => Self {
                insert_after: Some(anchor),
                content: Some(content),
                ..none
            },
            Change::Patch { patch } => Self {
                patch: Some(patch),
                ..none
            },
            Change::Content { content } => Self {
                content: Some(content),
                ..none
            },
            Change::Create { create } => Self {
                create: Some(create),
                ..none
            },
            Change::Remove => Self {
                remove: Some(true),
                ..none
            },
            Change::Mode { mode } => Self {
                mode: Some(mode),
                ..none
            },
        }
    }
}

impl Anchor {
    fn checked(self, field: &str, least: u64) -> Result<Self, Error> {
        let why = match &self {
            Self::Line(line) if *line < least => format!("`{field}` {line}: lines count from 1"),
            Self::Text(text) if text.is_blank() => format!("`{field}` is empty or white space only"),
            _ => return Ok(self),
        };
        Err(Error::invalid(why).with_path(field))
    }
}

/// What a path was or becomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct PathState {
    /// File, directory or symlink.
    pub kind: crate::read::EntryKind,
    /// Permission bits (0 for a symlink, which has none of its own).
    pub mode: u32,
    /// Digest of a file's bytes, or of a symlink's target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Size of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What an edit staged. It says *staged*: the live tree changes when the cell completes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct EditReceipt {
    /// Always `staged` inside a cell; `committed` in an event.
    pub status: ReceiptStatus,
    /// The path.
    pub path: WorkspacePath,
    /// What it was; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<PathState>,
    /// What it becomes; absent where nothing will be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<PathState>,
    /// Unified diff of text, bounded; empty where no text changes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// Further facts, such as the number of replacements (`matches`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, u64>,
}

/// How far a change has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum ReceiptStatus {
    /// Seen by this cell only.
    #[default]
    Staged,
    /// In the live tree.
    Committed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::from_text;

    #[test]
    fn a_change_is_exactly_one_form() {
        for bad in [
            "{}",
            r#"{"find": "a"}"#,
            r#"{"find": "a", "replacement": "b", "content": "c"}"#,
            r#"{"create": "a", "remove": true}"#,
            r#"{"remove": false}"#,
            r#"{"count": 1, "content": "x"}"#,
        ] {
            assert!(from_text::<Change>(bad).is_err(), "{bad}");
        }
        let error = from_text::<Change>(r#"{"find": "a", "replace": "b"}"#).unwrap_err();
        assert!(error.accepted.contains(&"replacement".to_owned()), "{error:?}");
    }

    #[test]
    fn the_accepted_forms_survive_the_way_through_serde() {
        let error = from_text::<Change>("{}").unwrap_err();
        assert_eq!(error.accepted, Change::FORMS);
        assert_eq!(error.detail, "a change is exactly one of the accepted forms");
    }

    #[test]
    fn white_space_searches_bad_counts_and_modes_are_refused() {
        for bad in [
            r#"{"find": " \n", "replacement": "b"}"#,
            r#"{"find": "a", "replacement": "b", "count": 0}"#,
            r#"{"find": "a", "replacement": "b", "count": "some"}"#,
            r#"{"mode": 65536}"#,
            r#"{"insertBefore": 0, "content": "x"}"#,
        ] {
            assert!(from_text::<Change>(bad).is_err(), "{bad}");
        }
    }
}
