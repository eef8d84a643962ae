//! Names of cells, sessions and lease epochs.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;

/// A word of 1 to 128 characters out of `A–Z a–z 0–9 . _ -`, not starting with a dot.
fn is_word(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && !text.starts_with('.')
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

macro_rules! word_type {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Validates a name.
            ///
            /// # Errors
            /// `invalid_input` unless it has 1 to 128 characters out of `A–Z a–z 0–9 . _ -` and does not start with a dot.
            pub fn new(text: impl Into<String>) -> Result<Self, Error> {
                let text = text.into();
                if is_word(&text) {
                    return Ok(Self(text));
                }
                Err(Error::invalid(format!(
                    concat!("`{}` is not a ", $what, ": 1 to 128 characters out of A-Z a-z 0-9 . _ - and no leading dot"),
                    text
                )))
            }

            /// Returns the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(D::Error::custom)
            }
        }
    };
}

word_type! {
    /// Names one cell, for ever: the kernel makes it from time and randomness.
    CellId, "cell id"
}

word_type! {
    /// Names a session: a state root and a chain of events.
    SessionName, "session name"
}

impl Default for SessionName {
    fn default() -> Self {
        Self("default".into())
    }
}

/// The fencing token of the workspace lease; grows at each acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_paths_are_refused() {
        for bad in ["", ".", "..", ".a", "a/b", "a b", "é", &"x".repeat(129)] {
            assert!(SessionName::new(bad).is_err(), "{bad:?}");
        }
        assert!(SessionName::new("main-2.x_Y").is_ok());
    }
}
