//! `z.apply`: an atomic change of many files, or a typed effect request.

use serde::{Deserialize, Serialize};

use crate::edit::{Change, EditReceipt, Expect};
use crate::json::{Refused, joined, present, union_forms};
use crate::{Error, Handle, JsonValue, WorkspacePath};

/// `z.apply(operations | effect, options?)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApplyRequest {
    /// What to apply.
    pub operations: ApplyTarget,
    /// How.
    #[serde(default)]
    pub options: ApplyOptions,
}

/// Operations on files, or one effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(
    remote = "Self",
    untagged,
    expecting = "expected an array of operations, or an effect request"
)]
pub enum ApplyTarget {
    /// An atomic change of many files.
    Files(Vec<FileOperation>),
    /// An action on the outside world.
    Effect(EffectRequest),
}

union_forms!(ApplyTarget);

/// Options of `z.apply`.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ApplyOptions {
    /// What must hold on the staged tree, or everything is unstaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
}

/// Checks on the staged tree.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Verify {
    /// No file may gain a syntax error.
    #[serde(skip_serializing_if = "crate::read::is_false")]
    pub parse: bool,
    /// This command must exit 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Milliseconds the command may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(try_from = "OperationFields", into = "OperationFields")]
pub enum FileOperation {
    /// Change one file: the change's own fields beside `path` and `expect`.
    Edit {
        /// The file.
        path: WorkspacePath,
        /// What to change.
        change: Change,
        /// What it must be now.
        expect: Option<Expect>,
    },
    /// Move a file, symlink or directory: `{move: [from, to]}`; `to` must be absent.
    Move {
        /// From.
        from: WorkspacePath,
        /// To.
        to: WorkspacePath,
        /// What `from` must be now.
        expect: Option<Expect>,
    },
    /// Copy a file or symlink: `{copy: [from, to]}`; `to` must be absent.
    Copy {
        /// From.
        from: WorkspacePath,
        /// To.
        to: WorkspacePath,
        /// What `from` must be now.
        expect: Option<Expect>,
    },
    /// Make a directory, and its parents: `{mkdir}`; a directory that is there already is left alone.
    Mkdir {
        /// The directory.
        path: WorkspacePath,
    },
    /// Make a symlink: `{symlink: [target, path]}`; `path` must be absent.
    Symlink {
        /// What it holds, escaped like a path; must not lead out of the workspace.
        target: String,
        /// Where it lies.
        path: WorkspacePath,
    },
}

impl FileOperation {
    /// Paths whose present content the operation depends on or replaces.
    pub fn paths(&self) -> Vec<&WorkspacePath> {
        match self {
            Self::Edit { path, .. } | Self::Mkdir { path } | Self::Symlink { path, .. } => vec![path],
            Self::Move { from, to, .. } | Self::Copy { from, to, .. } => vec![from, to],
        }
    }
}

/// An operation's fields as JSON gives them. The change's fields stand beside the others, and serde's `flatten` can
/// neither refuse unknown fields nor be written compactly: hence a value, taken apart by hand.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct OperationFields(JsonValue);

/// Two names of a move or a copy.
#[derive(Deserialize)]
#[serde(expecting = "[from, to]")]
struct FromTo(WorkspacePath, WorkspacePath);

/// A symlink's content and its name.
#[derive(Deserialize)]
#[serde(expecting = "[target, path]")]
struct TargetPath(String, WorkspacePath);

impl TryFrom<OperationFields> for FileOperation {
    type Error = Refused;

    fn try_from(fields: OperationFields) -> Result<Self, Refused> {
        Self::from_fields(fields).map_err(Refused::from)
    }
}

impl FileOperation {
    fn from_fields(fields: OperationFields) -> Result<Self, Error> {
        let serde_json::Value::Object(mut fields) = fields.0.0 else {
            return Err(Error::invalid("an operation is an object"));
        };
        fn take<T: serde::de::DeserializeOwned>(
            fields: &mut serde_json::Map<String, serde_json::Value>,
            name: &str,
        ) -> Result<Option<T>, Error> {
            let Some(value) = fields.remove(name) else {
                return Ok(None);
            };
            crate::json::from_value(value).map(Some).map_err(|e| match &e.path {
                Some(below) => {
                    let path = joined(name, below);
                    e.with_path(path)
                }
                None => e.with_path(name),
            })
        }
        let expect: Option<Expect> = take(&mut fields, "expect")?;
        let forms = || {
            [
                "{path, expect?, …one change…}",
                "{move: [from, to]}",
                "{copy: [from, to]}",
                "{mkdir: path}",
                "{symlink: [target, path]}",
            ]
            .into_iter()
            .chain(Change::FORMS)
        };
        let one = |fields: &serde_json::Map<_, _>, operation: Self| match fields.keys().next() {
            None => Ok(operation),
            Some(extra) => Err(Error::invalid(format!("unknown field `{extra}` beside this operation"))
                .with_path(extra)
                .with_accepted(forms())),
        };
        if let Some(FromTo(from, to)) = take(&mut fields, "move")? {
            return one(&fields, Self::Move { from, to, expect });
        }
        if let Some(FromTo(from, to)) = take(&mut fields, "copy")? {
            return one(&fields, Self::Copy { from, to, expect });
        }
        if let Some(path) = take(&mut fields, "mkdir")? {
            return one(&fields, Self::Mkdir { path });
        }
        if let Some(TargetPath(target, path)) = take(&mut fields, "symlink")? {
            return one(&fields, Self::Symlink { target, path });
        }
        let Some(path) = take(&mut fields, "path")? else {
            return Err(
                Error::invalid("an operation names its `path`, or is one of the accepted forms").with_accepted(forms()),
            );
        };
        let change = crate::json::from_value(serde_json::Value::Object(fields))?;
        Ok(Self::Edit { path, change, expect })
    }
}

impl From<FileOperation> for OperationFields {
    fn from(operation: FileOperation) -> Self {
        use serde_json::{Value, json};
        let (mut value, expect) = match operation {
            FileOperation::Edit { path, change, expect } => {
                // A change is an object by construction.
                let mut value = serde_json::to_value(change).unwrap_or(Value::Null);
                value["path"] = json!(path);
                (value, expect)
            }
            FileOperation::Move { from, to, expect } => (json!({ "move": [from, to] }), expect),
            FileOperation::Copy { from, to, expect } => (json!({ "copy": [from, to] }), expect),
            FileOperation::Mkdir { path } => (json!({ "mkdir": path }), None),
            FileOperation::Symlink { target, path } => (json!({ "symlink": [target, path] }), None),
        };
        if let Some(expect) = expect {
            value["expect"] = json!(expect);
        }
        // The order of the fields is part of the compact form, and must not hang on how serde_json is built.
        value.sort_all_objects();
        Self(JsonValue(value))
    }
}

/// A typed request for an action on the outside world, dispatched after the commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EffectRequest {
    /// Name of a channel that the host registered.
    pub effect: String,
    /// Business identity: the same key is the same action.
    pub key: String,
    /// What the channel gets.
    pub payload: JsonValue,
    /// Where the key is unique.
    #[serde(default)]
    pub scope: EffectScope,
}

/// Where an effect's key is unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum EffectScope {
    /// In the workspace.
    #[default]
    Workspace,
    /// In the session.
    Session,
    /// In the cell.
    Cell,
}

/// What `z.apply` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(remote = "Self", untagged)]
pub enum ApplyResult {
    /// The receipts, in the order of the operations.
    Files(ApplyReceipts),
    /// What became of the effect so far.
    Effect(EffectReceipt),
}

union_forms!(ApplyResult);

/// Receipts of an atomic change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct ApplyReceipts {
    /// One a path that changes, in the order of the operations.
    pub receipts: Vec<EditReceipt>,
}

/// What became of an effect so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct EffectReceipt {
    /// Staged now, or known already.
    pub status: EffectStatus,
    /// Names the effect; `z.read` tells later what became of it.
    pub handle: Handle,
    /// For a duplicate: the first one's evidence.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub evidence: Option<JsonValue>,
}

/// Whether an effect is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "snake_case")]
pub enum EffectStatus {
    /// It will be dispatched after the commit.
    Staged,
    /// The same key with the same payload was there already.
    Duplicate,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::from_text;

    #[test]
    fn the_forms_of_the_contract_are_read() {
        let read: Vec<FileOperation> = from_text(
            r#"[{"path": "a", "find": "x", "replacement": "y", "count": "all", "expect": "any"},
                {"move": ["a", "b"]}, {"copy": ["b", "c"]}, {"mkdir": "d"}, {"symlink": ["c", "l"]}]"#,
        )
        .unwrap();
        assert_eq!(read.len(), 5);
        let again: Vec<FileOperation> = from_text(&serde_json::to_string(&read).unwrap()).unwrap();
        assert_eq!(again, read);
    }

    #[test]
    fn the_field_inside_an_operation_is_named() {
        for (bad, place, accepted) in [
            (r#"[{"move": "b"}]"#, "[0].move", "[from, to]"),
            (r#"[{"copy": ["a", 1]}]"#, "[0].copy[1]", "a string"),
            (r#"[{"symlink": ["a"]}]"#, "[0].symlink", "[target, path]"),
            (
                r#"[{"path": "a", "lines": "1-2", "content": ""}]"#,
                "[0].lines",
                "[first, last]",
            ),
            (r#"[{"path": "a", "find": 1, "replacement": ""}]"#, "[0].find", "text"),
        ] {
            let error = from_text::<Vec<FileOperation>>(bad).unwrap_err();
            assert_eq!(error.path.as_deref(), Some(place), "{error:?}");
            assert!(error.accepted[0].starts_with(accepted), "{error:?}");
        }
    }

    #[test]
    fn foreign_fields_are_named() {
        for (bad, word) in [
            (r#"{"move": ["a", "b"], "content": "x"}"#, "content"),
            (r#"{"path": "a", "contents": "x"}"#, "contents"),
            (r#"{"mkdir": "d", "path": "e"}"#, "path"),
        ] {
            let error = from_text::<FileOperation>(bad).unwrap_err();
            assert!(error.detail.contains(word), "{error:?}");
        }
        assert!(from_text::<FileOperation>(r#"{"content": "x"}"#).is_err());
    }
}
