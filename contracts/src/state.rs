//! `z.state`: small JSON facts of the session.

use serde::{Deserialize, Serialize};

use crate::JsonValue;
use crate::json::{present, union_forms};

/// Greatest size of all keys and values of a session together, in bytes of JSON.
pub const STATE_BYTES: usize = 64 * 1024;

/// Greatest size of one value, in bytes of JSON.
pub const STATE_VALUE_BYTES: usize = 8 * 1024;

/// One call on `z.state`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum StateRequest {
    /// `get(key)`: the value, or nothing.
    Get {
        /// Which fact.
        key: String,
    },
    /// `set(key, value, {expect?})`.
    Set {
        /// Which fact.
        key: String,
        /// Its new value.
        value: JsonValue,
        /// What it must be now; an absent fact is `null`.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        expect: Option<JsonValue>,
    },
    /// `test(key, value)`: whether the fact has this value.
    Test {
        /// Which fact.
        key: String,
        /// The value to compare with.
        value: JsonValue,
    },
    /// `delete(key)`: whether it was there.
    Delete {
        /// Which fact.
        key: String,
    },
    /// `list(prefix?)`: keys and values.
    List {
        /// Only keys that start with this.
        #[serde(default)]
        prefix: String,
    },
}

/// What a call on `z.state` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(remote = "Self", untagged)]
pub enum StateResult {
    /// `set`, `test`, `delete`.
    Flag(bool),
    /// `list`.
    Entries(Vec<StateEntry>),
    /// `get`: the value; `null` where there is none.
    Value(JsonValue),
}

union_forms!(StateResult);

/// One fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct StateEntry {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: JsonValue,
}
