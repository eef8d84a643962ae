//! `z.read`: files, directories, handles and snapshots.

use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::json::union_forms;
use crate::{ByteRange, Digest, Handle, LineRange, WorkspacePath};

/// `z.read(target, options?)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadRequest {
    /// A workspace path, an absolute path, or a handle.
    pub target: String,
    /// How to read it.
    #[serde(default)]
    pub options: ReadOptions,
}

/// Options of `z.read`. At most one of the selectors `lines`, `bytes`, `symbol`, `match`, `pointer` may be given.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReadOptions {
    /// Return the content with what guards a later edit, instead of the bare string.
    #[serde(skip_serializing_if = "is_false")]
    pub snapshot: bool,
    /// Return a large or binary file whole instead of as a view.
    #[serde(skip_serializing_if = "is_false")]
    pub full: bool,
    /// Only these lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineRange>,
    /// Only these bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<ByteRange>,
    /// Only the definition of this symbol (name or qualified tail).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Only the line (or lines) that this literal text first stands on; `next` goes on to the following one.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub match_text: Option<String>,
    /// Only the JSON value at this RFC 6901 pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Directories: list what is below, too.
    #[serde(skip_serializing_if = "is_false")]
    pub recursive: bool,
    /// Directories: list what ignore rules exclude, too.
    #[serde(skip_serializing_if = "is_false")]
    pub ignored: bool,
    /// At most this many entries, or bytes of a partial read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Go on where an earlier answer stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}

/// What `z.read` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(remote = "Self", untagged)]
pub enum ReadResult {
    /// The complete content: a string, or bytes of a binary file read with `full`.
    Whole(Content),
    /// A view of a file too large or binary.
    View(FileView),
    /// A directory.
    Directory(DirectoryListing),
    /// A part.
    Partial(PartialRead),
    /// The complete content with its guard.
    Snapshot(SnapshotRead),
    /// What a structured handle (event, effect, tree snapshot) names.
    Record(crate::JsonValue),
}

union_forms!(ReadResult);

/// How the bytes of a file read as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Valid UTF-8 without NUL.
    #[serde(rename = "utf-8")]
    Utf8,
    /// Anything else.
    Binary,
}

/// The newline style of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum Newline {
    /// No line ends.
    None,
    /// `\n` only.
    Lf,
    /// `\r\n` only.
    Crlf,
    /// Both.
    Mixed,
}

/// The complete content of a file with what guards a later edit of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct SnapshotRead {
    /// The path that was read.
    pub path: WorkspacePath,
    /// Its complete content.
    pub content: Content,
    /// Names path, content and mode: a target for `z.edit` that guards itself.
    pub snapshot: Handle,
    /// Digest of the bytes: a value for `expect`.
    pub digest: Digest,
    /// How the bytes read as text.
    pub encoding: Encoding,
    /// Its newline style.
    pub newline: Newline,
    /// Whether it starts with a byte order mark.
    pub bom: bool,
    /// Permission bits, such as 0o644.
    pub mode: u32,
    /// Number of bytes.
    pub bytes: u64,
    /// Number of lines.
    pub lines: u64,
}

/// How large a whole content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct Extent {
    /// Lines; a last line without a newline counts, absent for binary content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// Bytes.
    pub bytes: u64,
}

/// A part of a content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct PartialRead {
    /// The part itself.
    pub content: Content,
    /// Where it lies in the whole.
    pub range: PartialRange,
    /// How large the whole is.
    pub of: Extent,
    /// Digest of the whole.
    pub digest: Digest,
    /// Guards an edit of the file; absent for a handle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Handle>,
    /// Reads the next part, given as the option `next` with the same selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Where a partial read lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct PartialRange {
    /// Bytes, 0-based and half-open.
    pub bytes: ByteRange,
    /// Lines, 1-based and inclusive; absent for binary content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineRange>,
}

/// The word `view`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum ViewTag {
    /// Always this.
    #[default]
    View,
}

/// A file or value shown in part: the whole is at `handle`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct FileView {
    /// The word `view`.
    pub kind: ViewTag,
    /// The exact bytes.
    pub handle: Handle,
    /// Number of bytes.
    pub bytes: u64,
    /// Number of lines; absent for binary content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// How the bytes read as text.
    pub encoding: Encoding,
    /// Projection of the content.
    pub preview: String,
    /// The file's symbols, where its language is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outline: Vec<OutlineItem>,
    /// Bytes that the preview leaves out.
    pub omitted: u64,
}

/// One symbol of an outline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct OutlineItem {
    /// Qualified name.
    pub symbol: String,
    /// Its kind, such as `function`.
    pub kind: String,
    /// Its lines.
    pub lines: LineRange,
    /// First line of its definition, without the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// The word `directory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum DirectoryTag {
    /// Always this.
    #[default]
    Directory,
}

/// The entries of a directory in order of their names' bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct DirectoryListing {
    /// The word `directory`.
    pub kind: DirectoryTag,
    /// The entries.
    pub entries: Vec<DirectoryEntry>,
    /// Whether no entry is missing.
    pub complete: bool,
    /// Reads the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct DirectoryEntry {
    /// Workspace path.
    pub path: WorkspacePath,
    /// What it is.
    pub kind: EntryKind,
    /// Size of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Permission bits.
    pub mode: u32,
    /// Target of a symlink, escaped like a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// What a directory entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, socket or device: listed, never opened.
    Other,
}
