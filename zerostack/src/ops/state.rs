//! `z.state`: get, set, test, delete, list.

use std::sync::Arc;

use serde_json::{Map, Value};
use zero_contracts::state::StateRequest;
use zero_contracts::{Error, Result, json};

use super::{named, reply};
use crate::cell::Cell;
use crate::frame::CallReply;

/// Answers `z.state.*`; `name` is `state.get` and so on.
pub(crate) fn state(cell: &Arc<Cell>, name: &str, arguments: Vec<Value>) -> Result<CallReply> {
    let request = request(name, arguments)?;
    reply(&cell.with_facts(|facts| facts.call(request))?)
}

fn request(name: &str, mut arguments: Vec<Value>) -> Result<StateRequest> {
    let method = name.strip_prefix("state.").unwrap_or(name);
    let mut fields = match method {
        "get" | "delete" => named(name, &["key"], arguments)?,
        "list" => named(name, &["prefix"], arguments)?,
        "test" | "set" => {
            // Here `null` is a value like any other.
            let value = (arguments.len() > 1).then(|| std::mem::take(&mut arguments[1]));
            let mut fields = named(
                name,
                if method == "set" {
                    &["key", "value", "options"]
                } else {
                    &["key", "value"]
                },
                arguments,
            )?;
            match fields.remove("options") {
                None => {}
                Some(Value::Object(mut options)) => {
                    if let Some(expect) = options.remove("expect") {
                        fields.insert("expect".into(), expect);
                    }
                    if let Some(unknown) = options.keys().next() {
                        return Err(Error::invalid(format!("unknown option `{unknown}`"))
                            .with_path(format!("options.{unknown}"))
                            .with_accepted(["expect"]));
                    }
                }
                Some(_) => {
                    return Err(Error::invalid("`options` is an object")
                        .with_path("options")
                        .with_accepted(["{expect}"]));
                }
            }
            fields.extend(value.map(|value| ("value".to_owned(), value)));
            fields
        }
        _ => return Err(Error::invalid(format!("z.{name} is not an operation"))),
    };
    if let Some(Value::String(_)) | None = fields.get("key") {
        let request = Value::Object(Map::from_iter([(
            method.to_owned(),
            Value::Object(std::mem::take(&mut fields)),
        )]));
        return json::from_value(request).map_err(|e| {
            // The request is a union by method, and a cell knows the arguments only.
            let path = e
                .path
                .as_deref()
                .and_then(|path| path.strip_prefix(method)?.strip_prefix('.'));
            match path.map(str::to_owned) {
                Some(path) => e.with_path(path),
                None => e,
            }
        });
    }
    Err(Error::invalid("`key` is a string").with_path("key"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use zero_contracts::{ErrorKind, JsonValue};

    #[test]
    fn every_method_is_read() {
        let key = "k".to_owned();
        let null = JsonValue(Value::Null);
        let cases = [
            ("state.get", json!(["k"]), StateRequest::Get { key: key.clone() }),
            (
                "state.set",
                json!(["k", null]),
                StateRequest::Set {
                    key: key.clone(),
                    value: null.clone(),
                    expect: None,
                },
            ),
            (
                "state.set",
                json!(["k", 1, {"expect": null}]),
                StateRequest::Set {
                    key: key.clone(),
                    value: JsonValue(json!(1)),
                    expect: Some(null.clone()),
                },
            ),
            (
                "state.test",
                json!(["k", null]),
                StateRequest::Test {
                    key: key.clone(),
                    value: null,
                },
            ),
            ("state.delete", json!(["k"]), StateRequest::Delete { key }),
            ("state.list", json!([]), StateRequest::List { prefix: String::new() }),
        ];
        for (name, arguments, expected) in cases {
            let Value::Array(arguments) = arguments else {
                unreachable!()
            };
            assert_eq!(request(name, arguments).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn malformed_calls_name_the_field() {
        for (name, arguments) in [
            ("state.get", json!([])),
            ("state.get", json!([7])),
            ("state.set", json!(["k"])),
            ("state.set", json!(["k", 1, {"expct": 2}])),
            ("state.list", json!(["a", "b"])),
        ] {
            let Value::Array(arguments) = arguments else {
                unreachable!()
            };
            assert_eq!(
                request(name, arguments).unwrap_err().kind,
                ErrorKind::InvalidInput,
                "{name}"
            );
        }
    }

    #[test]
    fn a_refusal_names_the_argument() {
        for (name, arguments, place) in [
            ("state.get", json!([]), "key"),
            ("state.get", json!([1]), "key"),
            ("state.set", json!(["k"]), "value"),
            ("state.test", json!(["k"]), "value"),
            ("state.list", json!([1]), "prefix"),
            ("state.set", json!(["k", 1, {"expects": 1}]), "options.expects"),
            ("state.set", json!(["k", 1, [1]]), "options"),
        ] {
            let Value::Array(given) = arguments.clone() else {
                unreachable!()
            };
            let error = request(name, given).unwrap_err();
            assert_eq!(error.path.as_deref(), Some(place), "{name}{arguments}: {error:?}");
        }
    }
}
