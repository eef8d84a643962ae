//! The border to the engine that owns what is shown.

use serde::{Deserialize, Serialize};

use crate::read::OutlineItem;
use crate::{ByteRange, CancelToken, Digest, Error, Handle, JsonValue, LineRange, ObjectStore};

/// A number of tokens and how it was got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct TokenCount {
    /// How many.
    pub tokens: u64,
    /// The encoding, such as `o200k_base`.
    pub encoding: String,
    /// False where the model is unknown and the number is an estimate.
    pub exact: bool,
}

/// What kind of text is projected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum TextKind {
    /// Find out from the text.
    #[default]
    Detect,
    /// Plain text: head and tail.
    Text,
    /// Output of tools: errors with their surroundings, head and tail, repeats folded.
    Log,
    /// A unified diff: hunks.
    Diff,
    /// One path or entry a line.
    Listing,
    /// Source code: outline and asked-for ranges.
    Source,
    /// JSON text: its shape.
    Json,
}

/// How a text is projected.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ProjectText<'a> {
    /// What kind of text it is.
    pub kind: TextKind,
    /// Greatest number of tokens shown.
    pub budget: u64,
    /// For source: its outline.
    pub outline: &'a [OutlineItem],
    /// For source: lines that matter most.
    pub wanted: &'a [LineRange],
}

/// What is shown of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct ProjectedText {
    /// The text shown; every cut is marked where it is.
    pub text: String,
    /// Names the whole text; absent if it is shown whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<Handle>,
    /// Tokens of the whole text.
    pub raw: TokenCount,
    /// Tokens of what is shown.
    pub shown: TokenCount,
    /// What is left out, in order.
    pub cuts: Vec<Cut>,
}

/// What is shown of a JSON value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct ProjectedValue {
    /// The value shown: valid JSON of the same shape. A [view](crate::read::FileView) may stand for a long string.
    pub value: JsonValue,
    /// Names the JSON text of the whole value; absent if it is shown whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<Handle>,
    /// Tokens of the whole value's JSON text.
    pub raw: TokenCount,
    /// Tokens of the JSON text shown.
    pub shown: TokenCount,
    /// What is left out of the whole, in order; where a view stands for a string, the string.
    pub cuts: Vec<Cut>,
}

/// A part that is not shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct Cut {
    /// Brings the part back, from the projection's handle.
    pub selector: Selector,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Names a part of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Selector {
    /// Bytes.
    Bytes(ByteRange),
    /// Lines.
    Lines(LineRange),
    /// The JSON value at an RFC 6901 pointer.
    Pointer(String),
    /// The lines that hold this literal text: the first ones in a row; `next` goes on.
    Match(String),
    /// The same, from the line on that starts at this byte: how a match goes on.
    MatchFrom(String, u64),
}

/// A part of an object, brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct Expansion {
    /// The exact bytes of the part (as much as the budget allows).
    pub content: crate::Content,
    /// Where they lie in the whole.
    pub bytes: ByteRange,
    /// Lines they lie on; absent for binary content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineRange>,
    /// Tokens of the part.
    pub tokens: TokenCount,
    /// The rest of the part, if the budget cut it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Selector>,
}

/// A projection of bytes that arrive in pieces, in bounded memory.
pub trait TextStream: Send {
    /// Takes the next bytes.
    fn take(&mut self, bytes: &[u8]);

    /// Projects all that was taken. `object` names where the whole is stored.
    ///
    /// # Errors
    /// As for [`TokenEngine::project_object`].
    fn finish(
        self: Box<Self>,
        object: &Digest,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedText, Error>;
}

/// The stream of an engine that has none.
struct ReadAtTheEnd<'a, E: ?Sized> {
    engine: &'a E,
    how: ProjectText<'a>,
}

impl<E: TokenEngine + ?Sized> TextStream for ReadAtTheEnd<'_, E> {
    fn take(&mut self, _: &[u8]) {}

    fn finish(
        self: Box<Self>,
        object: &Digest,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedText, Error> {
        self.engine.project_object(object, &self.how, objects, token)
    }
}

/// The engine that measures and projects output.
///
/// What is shown fits the budget, is never dearer than the original, marks every cut, and expands exactly. The same
/// input and budget give the same output. All methods may be called from several threads.
pub trait TokenEngine: Send + Sync {
    /// Counts tokens in the engine's encoding.
    fn count(&self, text: &str) -> TokenCount;

    /// Projects a text; stores the whole in `objects` only if something is cut. If it cannot be stored, it is shown whole
    /// or refused, never cut.
    ///
    /// # Errors
    /// `invalid_input` for a budget below the smallest mark; the store's errors; `cancelled` and `deadline`.
    fn project_text(
        &self,
        text: &str,
        how: &ProjectText<'_>,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedText, Error>;

    /// Projects stored bytes without holding them in memory; bytes outside UTF-8 are shown by the replacement character.
    ///
    /// # Errors
    /// As for [`project_text`](Self::project_text).
    fn project_object(
        &self,
        object: &Digest,
        how: &ProjectText<'_>,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedText, Error>;

    /// Begins to project bytes that arrive in pieces while somebody else stores them: what is stored need not be read again
    /// to be shown. What [`TextStream::finish`] gives is what [`project_object`](Self::project_object) gives of the object.
    ///
    /// An engine that does not provide it reads the object when it is finished.
    fn project_stream<'a>(&'a self, how: &ProjectText<'a>) -> Box<dyn TextStream + 'a> {
        Box::new(ReadAtTheEnd {
            engine: self,
            how: how.clone(),
        })
    }

    /// Projects a JSON value: same shape, strings and collections cut inside. A view with a handle of its own, stored in
    /// `objects`, stands for a long string that is not shown whole.
    ///
    /// # Errors
    /// As for [`project_text`](Self::project_text).
    fn project_value(
        &self,
        value: &serde_json::Value,
        budget: u64,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedValue, Error>;

    /// Brings a part of an object back, at most `budget` tokens of it.
    ///
    /// # Errors
    /// `not_found` for the object or pointer, `invalid_input` for a range past the end, `corrupt`.
    fn expand(
        &self,
        object: &Digest,
        selector: &Selector,
        budget: Option<u64>,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<Expansion, Error>;
}
