//! JSON values inside typed messages, and the strict reading of requests.

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::ACCEPTED;
use crate::{Error, ErrorKind};

/// Any JSON value. Its compact form is its JSON text, because postcard does not describe itself.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct JsonValue(pub serde_json::Value);

impl Serialize for JsonValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            self.0.serialize(serializer)
        } else {
            serializer.serialize_str(&serde_json::to_string(&self.0).map_err(S::Error::custom)?)
        }
    }
}

impl<'de> Deserialize<'de> for JsonValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            serde_json::Value::deserialize(deserializer).map(Self)
        } else {
            serde_json::from_str(&String::deserialize(deserializer)?)
                .map(Self)
                .map_err(D::Error::custom)
        }
    }
}

impl From<serde_json::Value> for JsonValue {
    fn from(value: serde_json::Value) -> Self {
        Self(value)
    }
}

/// Reads a request from its JSON text.
///
/// # Errors
/// `invalid_input` that names the field (`path`) and, for an unknown field or word, lists the accepted ones; a value that
/// its own type refuses keeps the kind of that refusal, such as `outside_workspace`.
pub fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|e| invalid(&e))?;
    deserializer.end().map_err(|e| Error::invalid(e.to_string()))?;
    Ok(value)
}

/// Reads a request from a JSON value; errors as for [`from_text`].
pub fn from_value<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, Error> {
    serde_path_to_error::deserialize(value).map_err(|e| invalid(&e))
}

fn invalid(error: &serde_path_to_error::Error<serde_json::Error>) -> Error {
    let text = error.inner().to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(head, _)| head);
    // An error of a contract type arrives as its text: take it apart again.
    let typed = ErrorKind::ALL
        .iter()
        .find_map(|kind| Some((*kind, text.strip_prefix(kind.as_str())?.strip_prefix(": ")?)));
    let (kind, text) = typed.unwrap_or((ErrorKind::InvalidInput, text));
    let (detail, accepted): (&str, Vec<&str>) = match (text.split_once(ACCEPTED[0]), text.split_once("expected")) {
        (Some((detail, accepted)), _) => (detail, accepted.split(ACCEPTED[1]).collect()),
        // serde says "unknown field `x`, expected one of `a`, `b`".
        (None, Some((head, tail))) if head.starts_with("unknown ") => {
            (text, tail.split('`').skip(1).step_by(2).collect())
        }
        _ => (text, Vec::new()),
    };
    let path = error.path().to_string();
    let error = Error::new(kind, detail).with_accepted(accepted);
    if path == "." { error } else { error.with_path(path) }
}

/// Reads a field whose JSON `null` is a value and whose absence is none.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<JsonValue>, D::Error> {
    if deserializer.is_human_readable() {
        JsonValue::deserialize(deserializer).map(Some)
    } else {
        Option::deserialize(deserializer)
    }
}

/// Gives a type whose JSON form is a union (`#[serde(remote = "Self", untagged)]`) both forms: the compact one is the
/// JSON text, because an untagged union needs a format that describes itself.
macro_rules! union_forms {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    return $name::serialize(self, serializer);
                }
                let mut text = Vec::new();
                $name::serialize(self, &mut serde_json::Serializer::new(&mut text))
                    .map_err(serde::ser::Error::custom)?;
                serializer.serialize_bytes(&text)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    return $name::deserialize(deserializer);
                }
                let text = Vec::<u8>::deserialize(deserializer)?;
                $name::deserialize(&mut serde_json::Deserializer::from_slice(&text)).map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use union_forms;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[serde(rename = "count")]
        _count: u32,
    }

    #[test]
    fn an_unknown_field_is_named_and_the_known_ones_listed() {
        let error = from_text::<Sample>(r#"{"cuont": 1}"#).unwrap_err();
        assert_eq!(
            (error.kind, error.accepted),
            (ErrorKind::InvalidInput, vec!["count".to_owned()])
        );
        let error = from_text::<Vec<Sample>>(r#"[{"count": -1}]"#).unwrap_err();
        assert_eq!(error.path.as_deref(), Some("[0].count"));
        assert!(from_text::<Sample>(r#"{"count": 1} x"#).is_err());
    }

    #[test]
    fn the_kind_of_a_refusal_survives_the_way_through_serde() {
        let error = from_text::<Vec<crate::WorkspacePath>>(r#"["a", "../b"]"#).unwrap_err();
        assert_eq!(
            (error.kind, error.path.as_deref()),
            (ErrorKind::OutsideWorkspace, Some("[1]"))
        );
    }
}
