//! Holds what scenarios say against the published schemas: every request of a cell that is not refused as invalid, and every
//! response.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use zerostack::contracts::{CancelToken, Operation};
use zerostack::{KernelConfig, Policy};

/// Notes every call, and lets the policy decide that was there before.
pub(crate) struct Recording {
    inner: Option<Arc<dyn Policy>>,
    calls: Mutex<Vec<(Operation, Vec<Value>)>>,
}

impl Recording {
    /// Puts a recording policy before the configured one.
    pub(crate) fn install(config: &mut KernelConfig) -> Arc<Self> {
        let recording = Arc::new(Self {
            inner: config.policy.take(),
            calls: Mutex::default(),
        });
        config.policy = Some(Arc::clone(&recording) as Arc<dyn Policy>);
        recording
    }

    /// Tells which of the noted requests their schemas refuse.
    pub(crate) fn refused(&self) -> Vec<String> {
        let calls = std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        let mut refused = Vec::new();
        for (operation, arguments) in calls {
            let validator = validator(operation.as_str());
            let forms = named(operation, &arguments);
            if !forms.iter().any(|form| validator.is_valid(form)) {
                refused.push(format!(
                    "the schema of z.{operation} refuses {}",
                    Value::Array(arguments)
                ));
            }
        }
        refused
    }
}

impl Policy for Recording {
    fn check(&self, operation: Operation, arguments: &[Value], token: &CancelToken) -> Result<(), String> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push((operation, arguments.to_vec()));
        drop(calls);
        self.inner
            .as_ref()
            .map_or(Ok(()), |inner| inner.check(operation, arguments, token))
    }
}

/// Tells what a response's schema says against it.
pub(crate) fn response(response: &Value) -> Option<String> {
    let refused = validator("response").validate(response).err()?;
    Some(format!("the schema of responses: {refused}"))
}

#[expect(clippy::expect_used, reason = "the schemas are part of the program")]
fn validator(definition: &str) -> jsonschema::Validator {
    let mut schema = zerostack::schemas();
    schema["$ref"] = json!(format!("#/$defs/{definition}"));
    jsonschema::validator_for(&schema).expect("the schemas are well formed")
}

/// A call's arguments by their names; for `z.state` every method that they may be of, because a policy does not hear which.
fn named(operation: Operation, arguments: &[Value]) -> Vec<Value> {
    let by = |names: &[&str], keep_null: bool| -> Value {
        let pairs = names.iter().zip(arguments);
        let given = pairs.filter(|(name, value)| !value.is_null() || (keep_null && **name == "value"));
        Value::Object(
            given
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect::<Map<_, _>>(),
        )
    };
    match operation {
        Operation::Read => vec![by(&["target", "options"], false)],
        Operation::Find => vec![by(&["query", "options"], false)],
        Operation::Edit => vec![by(&["target", "change", "options"], false)],
        Operation::Apply => vec![by(&["operations", "options"], false)],
        Operation::Run => vec![by(&["command", "options"], false)],
        Operation::State => {
            let mut set = by(&["key", "value", "options"], true);
            if let Some(Value::Object(options)) = set.as_object_mut().and_then(|set| set.remove("options")) {
                for (name, option) in options {
                    set[name] = option;
                }
            }
            vec![
                json!({ "get": by(&["key"], false) }),
                json!({ "delete": by(&["key"], false) }),
                json!({ "list": by(&["prefix"], false) }),
                json!({ "test": by(&["key", "value"], true) }),
                json!({ "set": set }),
            ]
        }
    }
}
