//! Content of a file as a request or result carries it: text, or bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::union_forms;

/// Text (a JSON string) or bytes (`{"base64": "…"}`; a `Uint8Array` inside a cell).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(proptest_derive::Arbitrary))]
#[serde(remote = "Self", untagged, expecting = "expected text, or bytes as {\"base64\": …}")]
pub enum Content {
    /// UTF-8 text.
    Text(String),
    /// Arbitrary bytes.
    Bytes(Bytes),
}

union_forms!(Content);

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Content {
    /// Takes bytes as text if they are UTF-8, else as bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Bytes(Bytes(error.into_bytes())),
        }
    }

    /// Returns the exact bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => &bytes.0,
        }
    }

    /// Tells whether there is nothing but white space (of bytes: ASCII white space).
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::Bytes(bytes) => bytes.0.trim_ascii().is_empty(),
        }
    }

    /// Returns the exact bytes, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Bytes(bytes) => bytes.0,
        }
    }
}

/// Bytes whose JSON form is `{"base64": "…"}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Bytes(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Base64 {
    base64: String,
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            Base64 {
                base64: STANDARD.encode(&self.0),
            }
            .serialize(serializer)
        } else {
            serializer.serialize_bytes(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = Base64::deserialize(deserializer)?.base64;
            STANDARD.decode(text).map(Self).map_err(serde::de::Error::custom)
        } else {
            Vec::<u8>::deserialize(deserializer).map(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_and_bytes_stay_bytes() {
        assert_eq!(
            serde_json::to_string(&Content::from_bytes(b"a\xc3\xa9".to_vec())).unwrap(),
            "\"aé\""
        );
        let bytes = Content::from_bytes(vec![0xff, 0]);
        assert_eq!(serde_json::to_string(&bytes).unwrap(), r#"{"base64":"/wA="}"#);
        assert_eq!(serde_json::from_str::<Content>(r#"{"base64":"/wA="}"#).unwrap(), bytes);
        assert!(serde_json::from_str::<Content>(r#"{"base64":"*"}"#).is_err());
        assert!(serde_json::from_str::<Content>("7").is_err());
    }
}
