//! JSON Schemas (draft 2020-12) of the messages, for hosts and models that want them.
//!
//! They are written by hand, because the requests are read by shape, and held against the types by property tests: every
//! message that a type can hold is valid, and a request with a member that the type refuses is not.

/// The schemas as one JSON document: `$defs` has `read`, `find`, `edit`, `apply`, `run`, `state`, `response`, `event`,
/// `budgets`, `undoOptions`, `undoReport`, and what they are made of.
pub const SCHEMAS: &str = include_str!("../schemas.json");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::SCHEMAS;

    /// The validator of one definition.
    fn validator(definition: &str) -> jsonschema::Validator {
        let mut schema: Value = serde_json::from_str(SCHEMAS).unwrap();
        assert!(schema["$defs"][definition].is_object(), "{definition}");
        schema["$ref"] = json!(format!("#/$defs/{definition}"));
        jsonschema::validator_for(&schema).unwrap()
    }

    /// Every copy of a value with one foreign member in one of its objects.
    fn with_foreign_member(value: &Value) -> Vec<Value> {
        let mut found = Vec::new();
        match value {
            Value::Object(members) => {
                let mut with = members.clone();
                with.insert("foreignMember".into(), json!(1));
                found.push(Value::Object(with));
                for (name, member) in members {
                    for changed in with_foreign_member(member) {
                        let mut with = members.clone();
                        with.insert(name.clone(), changed);
                        found.push(Value::Object(with));
                    }
                }
            }
            Value::Array(elements) => {
                for (n, element) in elements.iter().enumerate() {
                    for changed in with_foreign_member(element) {
                        let mut with = elements.clone();
                        with[n] = changed;
                        found.push(Value::Array(with));
                    }
                }
            }
            _ => {}
        }
        found
    }

    fn holds<T: Arbitrary + Serialize + DeserializeOwned>(definition: &str, is_request: bool) {
        let validator = validator(definition);
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(64));
        let tested = runner.run(&any::<T>(), |message| {
            let message = serde_json::to_value(message).unwrap();
            if let Err(error) = validator.validate(&message) {
                return Err(TestCaseError::fail(format!("{error}: {message:#}")));
            }
            for foreign in with_foreign_member(&message).into_iter().take(20) {
                // What the type takes, the schema takes; what a request's type refuses, its schema refuses.
                let taken = crate::json::from_value::<T>(foreign.clone()).is_ok();
                prop_assert!(!taken || validator.is_valid(&foreign), "{foreign:#}");
                prop_assert!(!is_request || taken || !validator.is_valid(&foreign), "{foreign:#}");
            }
            Ok(())
        });
        tested.unwrap_or_else(|error| panic!("{definition}: {error}"));
    }

    #[test]
    fn every_message_is_valid_and_what_a_request_refuses_is_not() {
        holds::<crate::read::ReadRequest>("read", true);
        holds::<crate::find::FindRequest>("find", true);
        holds::<crate::edit::EditRequest>("edit", true);
        holds::<crate::apply::ApplyRequest>("apply", true);
        holds::<crate::run::RunRequest>("run", true);
        holds::<crate::state::StateRequest>("state", true);
        holds::<crate::Budgets>("budgets", true);
        holds::<crate::UndoOptions>("undoOptions", true);
        holds::<crate::UndoReport>("undoReport", false);
        holds::<crate::ZeroKernelResponse>("response", false);
        holds::<crate::ZeroKernelEvent>("event", false);
    }

    #[test]
    fn what_is_no_request_is_not_valid() {
        for (definition, value) in [
            ("read", json!({})),
            ("read", json!({"target": "a", "options": {"lines": [1]}})),
            ("find", json!({"query": "a", "options": {"mode": "magic"}})),
            ("edit", json!({"target": "a", "change": {"find": "a"}})),
            (
                "edit",
                json!({"target": "a", "change": {"find": " ", "replacement": "b"}}),
            ),
            ("edit", json!({"target": "a", "change": {"remove": false}})),
            ("apply", json!({"operations": [{"move": ["a"]}]})),
            ("apply", json!({"operations": [{"path": "a"}]})),
            ("run", json!({"command": 7})),
            ("state", json!({"set": {"key": "a"}})),
            ("response", json!({"outcome": "Done"})),
        ] {
            assert!(!validator(definition).is_valid(&value), "{definition}: {value}");
        }
    }
}
