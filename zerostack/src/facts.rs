//! A session's state as one cell sees it: facts loaded from the state root, changes staged until the cell commits.
//!
//! A state root is the digest of the canonical JSON object of all facts; an empty state has no root.

use std::collections::BTreeMap;

use serde_json::Value;
use zero_contracts::state::{STATE_BYTES, STATE_VALUE_BYTES, StateEntry, StateRequest, StateResult};
use zero_contracts::{Digest, Error, ErrorKind, JsonValue, ObjectStore};

use crate::config::Result;
use crate::record::canonical_json;

const KEY_BYTES: usize = 256;

/// The facts of one session inside one cell.
pub struct Facts {
    base: Option<Digest>,
    facts: BTreeMap<String, Value>,
    changed: bool,
}

impl Facts {
    /// Loads the facts of a state root.
    ///
    /// # Errors
    /// `not_found`, `corrupt`.
    pub fn load(base: Option<Digest>, objects: &dyn ObjectStore) -> Result<Self> {
        let facts = match &base {
            None => BTreeMap::new(),
            Some(root) => serde_json::from_slice(&objects.get(root)?).map_err(|e| {
                Error::new(
                    ErrorKind::Corrupt,
                    format!("the state root {root} is not a JSON object: {e}"),
                )
            })?,
        };
        Ok(Self {
            base,
            facts,
            changed: false,
        })
    }

    /// The root the cell started from.
    pub fn base(&self) -> Option<Digest> {
        self.base
    }

    /// Whether a fact was set or deleted.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// Deletes every fact.
    pub fn clear(&mut self) {
        self.changed |= !self.facts.is_empty();
        self.facts.clear();
    }

    /// Stores the facts as they are now and returns their root; none if there are no facts.
    ///
    /// # Errors
    /// `budget`, `io`.
    pub fn store(&self, objects: &dyn ObjectStore) -> Result<Option<Digest>> {
        if !self.changed {
            return Ok(self.base);
        }
        if self.facts.is_empty() {
            return Ok(None);
        }
        objects.put(&canonical_json(&self.facts)?).map(Some)
    }

    /// Answers one call on `z.state`.
    ///
    /// # Errors
    /// `invalid_input` for a bad key, `budget` for a value or state too large, `conflict` if a fact is not as expected.
    pub fn call(&mut self, request: StateRequest) -> Result<StateResult> {
        Ok(match request {
            StateRequest::Get { key } => StateResult::Value(JsonValue(self.get(&key).clone())),
            StateRequest::Test { key, value } => StateResult::Flag(*self.get(&key) == value.0),
            StateRequest::Delete { key } => {
                let was_there = self.facts.remove(&key).is_some();
                self.changed |= was_there;
                StateResult::Flag(was_there)
            }
            StateRequest::List { prefix } => StateResult::Entries(
                self.facts
                    .range(prefix.clone()..)
                    .take_while(|(key, _)| key.starts_with(&prefix))
                    .map(|(key, value)| StateEntry {
                        key: key.clone(),
                        value: JsonValue(value.clone()),
                    })
                    .collect(),
            ),
            StateRequest::Set { key, value, expect } => {
                self.set(key, value.0, expect.map(|expect| expect.0))?;
                StateResult::Flag(true)
            }
        })
    }

    fn get(&self, key: &str) -> &Value {
        self.facts.get(key).unwrap_or(&Value::Null)
    }

    fn set(&mut self, key: String, value: Value, expect: Option<Value>) -> Result<()> {
        if key.is_empty() || key.len() > KEY_BYTES {
            return Err(
                Error::invalid(format!("a key has 1 to {KEY_BYTES} bytes, this one {}", key.len())).with_path("key"),
            );
        }
        let now = self.get(&key);
        if let Some(expect) = expect
            && *now != expect
        {
            return Err(Error::new(ErrorKind::Conflict, format!("`{key}` is {now}, not {expect}")).with_path(key));
        }
        let size = |value: &Value| serde_json::to_string(value).map_or(usize::MAX, |text| text.len());
        let bytes = size(&value);
        if bytes > STATE_VALUE_BYTES {
            return Err(Error::new(
                ErrorKind::Budget,
                format!("the value of `{key}` has {bytes} bytes of JSON; a fact may have {STATE_VALUE_BYTES}: keep a handle instead"),
            )
            .with_path(key));
        }
        let others: usize = self
            .facts
            .iter()
            .filter(|(k, _)| **k != key)
            .map(|(k, v)| k.len() + size(v) + 4)
            .sum();
        let all = others + key.len() + bytes + 4;
        if all > STATE_BYTES {
            return Err(Error::new(
                ErrorKind::Budget,
                format!("the state would have {all} bytes; a session may have {STATE_BYTES}: delete facts first"),
            )
            .with_path(key));
        }
        self.facts.insert(key, value);
        self.changed = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn empty() -> Facts {
        Facts {
            base: None,
            facts: BTreeMap::new(),
            changed: false,
        }
    }

    fn set(key: &str, value: Value, expect: Option<Value>) -> StateRequest {
        StateRequest::Set {
            key: key.into(),
            value: JsonValue(value),
            expect: expect.map(JsonValue),
        }
    }

    #[test]
    fn set_compares_and_a_missing_fact_is_null() {
        let mut facts = empty();
        assert!(facts.call(set("a", json!(1), Some(Value::Null))).is_ok());
        let error = facts.call(set("a", json!(2), Some(json!(7)))).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert_eq!(
            facts.call(StateRequest::Get { key: "a".into() }).unwrap(),
            StateResult::Value(JsonValue(json!(1)))
        );
        assert_eq!(
            facts.call(StateRequest::Delete { key: "b".into() }).unwrap(),
            StateResult::Flag(false)
        );
    }

    #[test]
    fn list_takes_a_prefix() {
        let mut facts = empty();
        for key in ["a", "b/1", "b/2", "c"] {
            facts.call(set(key, json!(key), None)).unwrap();
        }
        let StateResult::Entries(entries) = facts.call(StateRequest::List { prefix: "b/".into() }).unwrap() else {
            panic!("entries")
        };
        assert_eq!(
            entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(),
            ["b/1", "b/2"]
        );
    }

    #[test]
    fn values_and_the_whole_are_bounded() {
        let mut facts = empty();
        assert_eq!(
            facts.call(set("a", json!("x".repeat(9000)), None)).unwrap_err().kind,
            ErrorKind::Budget
        );
        for n in 0..7 {
            facts
                .call(set(&format!("k{n}"), json!("x".repeat(8000)), None))
                .unwrap();
        }
        let full = (7..10).find_map(|n| facts.call(set(&format!("k{n}"), json!("x".repeat(8000)), None)).err());
        assert_eq!(full.unwrap().kind, ErrorKind::Budget);
        assert!(!facts.facts.contains_key("k9"));
    }
}
