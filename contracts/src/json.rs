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
    let (text, below) = match text.rsplit_once(FIELD) {
        Some((head, field)) => (head, Some(field)),
        None => (text, None),
    };
    let typed = ErrorKind::ALL
        .iter()
        .find_map(|kind| Some((*kind, text.strip_prefix(kind.as_str())?.strip_prefix(": ")?)));
    let outer = error.path().to_string();
    let outer = if outer == "." { "" } else { outer.as_str() };
    let (refused, below) = match typed {
        Some((kind, text)) => (
            match text.split_once(ACCEPTED[0]) {
                Some((detail, accepted)) => Error::new(kind, detail).with_accepted(accepted.split(ACCEPTED[1])),
                None => Error::new(kind, text),
            },
            below,
        ),
        None => in_words_of_json(text),
    };
    match (outer, below) {
        ("", None) => refused,
        (outer, None) => refused.with_path(outer),
        (outer, Some(below)) => refused.with_path(joined(outer, below)),
    }
}

/// The place `below` in the value at `outer`.
pub(crate) fn joined(outer: &str, below: &str) -> String {
    let dot = if outer.is_empty() || below.starts_with('[') {
        ""
    } else {
        "."
    };
    format!("{outer}{dot}{below}")
}

/// Says what serde says of a value, with JSON's names for things instead of Rust's; beside it, the missing field's name.
fn in_words_of_json(text: &str) -> (Error, Option<&str>) {
    if let Some(field) = text
        .strip_prefix("missing field `")
        .and_then(|rest| rest.strip_suffix('`'))
    {
        return (Error::invalid(format!("`{field}` is missing")), Some(field));
    }
    if let Some(wanted) = text.strip_prefix("expected ") {
        return (Error::invalid(text).with_accepted([wanted]), None);
    }
    let Some((met, wanted)) = text.split_once(", expected ") else {
        return (Error::invalid(text), None);
    };
    if met.starts_with("unknown ") {
        // "unknown field `x`, expected one of `a`, `b`"
        let accepted = wanted.split('`').skip(1).step_by(2);
        return (Error::invalid(text).with_accepted(accepted), None);
    }
    let wanted = match wanted.split_once(' ').unwrap_or((wanted, "")) {
        ("struct" | "map", _) | ("a", "map") => "an object",
        ("a", "sequence") => "an array",
        ("u8" | "u16" | "u32" | "u64" | "usize", _) => "a whole number from 0",
        ("i8" | "i16" | "i32" | "i64" | "isize", _) => "a whole number",
        ("f32" | "f64", _) => "a number",
        ("unit", _) => "null",
        _ => wanted,
    };
    let met = match met.split_once(": ") {
        Some(("invalid type" | "invalid value", met)) => match met.split_once(' ') {
            None if met == "map" => "an object",
            None if met == "sequence" => "an array",
            Some(("string", literal)) => literal,
            Some(("integer" | "boolean" | "floating", literal)) => literal.split('`').nth(1).unwrap_or(literal),
            Some(("unit", _)) => "null",
            _ => met,
        },
        _ => met.strip_prefix("invalid ").unwrap_or(met),
    };
    (
        Error::invalid(format!("expected {wanted}, not {met}")).with_accepted([wanted]),
        None,
    )
}

/// Stands between an error's text and the field inside the value that it is about, where a value is read in two steps.
const FIELD: &str = "; field: ";

/// An error of the second step of reading a value: its text keeps the field.
pub(crate) struct Refused(Error);

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0.path {
            Some(path) => write!(f, "{}{FIELD}{path}", self.0),
            None => write!(f, "{}", self.0),
        }
    }
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
    fn what_is_wrong_with_a_value_is_said_in_the_words_of_json() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only ever refused")]
        struct All {
            count: u32,
            name: String,
            yes: bool,
            list: Vec<f64>,
            inner: Option<Sample>,
            lines: Option<crate::LineRange>,
        }
        let base = serde_json::json!({"count": 1, "name": "", "yes": true, "list": []});
        for (field, value, wanted, met) in [
            ("count", serde_json::json!(-1), "a whole number from 0", "-1"),
            ("count", serde_json::json!("1"), "a whole number from 0", "\"1\""),
            ("name", serde_json::json!({}), "a string", "an object"),
            ("yes", serde_json::json!(null), "a boolean", "null"),
            ("list", serde_json::json!("a"), "an array", "\"a\""),
            ("inner", serde_json::json!(true), "an object", "true"),
            ("lines", serde_json::json!("1-2"), "[first, last]", "\"1-2\""),
            ("lines", serde_json::json!([1]), "[first, last]", "length 1"),
        ] {
            let mut given = base.clone();
            given[field] = value;
            let error = from_value::<All>(given).unwrap_err();
            assert_eq!(error.detail, format!("expected {wanted}, not {met}"));
            assert_eq!(
                (error.path.as_deref(), error.accepted),
                (Some(field), vec![wanted.to_owned()])
            );
        }
        let error = from_text::<Vec<Sample>>("[{}]").unwrap_err();
        assert_eq!(
            (error.path.as_deref(), &*error.detail),
            (Some("[0].count"), "`count` is missing")
        );
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
