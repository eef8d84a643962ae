//! The six operations: each turns the cell's arguments into a typed request and routes it to an engine.

pub mod apply;
pub mod edit;
pub mod find;
pub mod read;
pub mod run;
pub mod state;

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use zero_contracts::{CancelToken, Error, ErrorKind, Operation, Result, json};

use crate::cell::Cell;
use crate::frame::CallReply;

/// Answers one call.
pub(crate) fn answer(
    cell: &Arc<Cell>,
    operation: Operation,
    name: &str,
    arguments: Vec<Value>,
    token: &CancelToken,
) -> Result<CallReply> {
    match operation {
        Operation::Read => read::read(cell, request(name, &["target", "options"], arguments)?, token),
        Operation::Find => find::find(cell, request(name, &["query", "options"], arguments)?, token),
        Operation::Edit => edit::edit(cell, request(name, &["target", "change", "options"], arguments)?, token),
        Operation::Apply => apply::apply(cell, arguments, token),
        Operation::Run => run::run(cell, request(name, &["command", "options"], arguments)?, token),
        Operation::State => state::state(cell, name, arguments),
    }
}

/// Names positional arguments and reads them as one request. A trailing `null` or missing argument is absent.
fn request<T: DeserializeOwned>(name: &str, names: &[&str], arguments: Vec<Value>) -> Result<T> {
    json::from_value(Value::Object(named(name, names, arguments)?))
}

fn named(name: &str, names: &[&str], arguments: Vec<Value>) -> Result<Map<String, Value>> {
    if arguments.len() > names.len() {
        let given = arguments.len();
        return Err(Error::invalid(format!(
            "z.{name} takes {} arguments, {given} were given",
            names.join(", ")
        ))
        .with_accepted(names.iter().copied()));
    }
    // serde would read an array as a struct's fields in their order.
    let unnamed = |(name, value): &(&&str, &Value)| matches!(**name, "options" | "change") && value.is_array();
    if let Some((name, _)) = names.iter().zip(&arguments).find(unnamed) {
        return Err(Error::invalid("expected an object, not an array")
            .with_path(name)
            .with_accepted(["an object"]));
    }
    let named = names.iter().zip(arguments).filter(|(_, value)| !value.is_null());
    Ok(named.map(|(name, value)| ((*name).to_owned(), value)).collect())
}

/// Answers with a value of the contracts.
fn reply<T: Serialize>(value: &T) -> Result<CallReply> {
    serde_json::to_string(value)
        .map(CallReply::json)
        .map_err(|e| Error::new(ErrorKind::Internal, format!("an answer cannot be written as JSON: {e}")))
}
