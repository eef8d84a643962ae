//! Handles: names of durable things, `z://KIND/<64 hex>`.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Digest, Error, ErrorKind};

/// What a [`Handle`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandleKind {
    /// Exact bytes in the object store.
    Blob,
    /// A tree manifest; that of one file guards an edit of it.
    Snapshot,
    /// The terminal event of a cell.
    Event,
    /// An intent to act on the outside world.
    Effect,
}

impl HandleKind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Blob, Self::Snapshot, Self::Event, Self::Effect];

    /// Returns the word used inside a handle.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Snapshot => "snapshot",
            Self::Event => "event",
            Self::Effect => "effect",
        }
    }
}

/// A durable name that `z.read` resolves until it is collected: `z://blob/…`, `z://snapshot/…`, `z://event/…`,
/// `z://effect/…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle {
    /// What is named.
    pub kind: HandleKind,
    /// Digest of the object's bytes; for an effect, of its channel, scope and key.
    pub digest: Digest,
}

impl Handle {
    /// Makes a handle of any kind.
    pub const fn new(kind: HandleKind, digest: Digest) -> Self {
        Self { kind, digest }
    }

    /// Names exact bytes.
    pub const fn blob(digest: Digest) -> Self {
        Self::new(HandleKind::Blob, digest)
    }

    /// Names a snapshot manifest.
    pub const fn snapshot(digest: Digest) -> Self {
        Self::new(HandleKind::Snapshot, digest)
    }

    /// Names a terminal event.
    pub const fn event(digest: Digest) -> Self {
        Self::new(HandleKind::Event, digest)
    }

    /// Names an effect.
    pub const fn effect(digest: Digest) -> Self {
        Self::new(HandleKind::Effect, digest)
    }

    /// Tells whether `text` claims to be a handle, well formed or not.
    pub fn is_handle(text: &str) -> bool {
        text.starts_with("z://")
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "z://{}/{}", self.kind.as_str(), self.digest)
    }
}

impl FromStr for Handle {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parsed = text
            .strip_prefix("z://")
            .and_then(|rest| rest.split_once('/'))
            .and_then(|(word, hex)| {
                let kind = HandleKind::ALL.into_iter().find(|kind| kind.as_str() == word)?;
                Some(Self {
                    kind,
                    digest: hex.parse().ok()?,
                })
            });
        parsed.ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, format!("`{text}` is not a handle"))
                .with_accepted(HandleKind::ALL.map(|kind| format!("z://{}/<64 hexadecimal digits>", kind.as_str())))
        })
    }
}

impl Serialize for Handle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            (self.kind, self.digest).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Handle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
        } else {
            <(HandleKind, Digest)>::deserialize(deserializer).map(|(kind, digest)| Self { kind, digest })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_comes_back_from_its_text() {
        for kind in HandleKind::ALL {
            let handle = Handle::new(kind, Digest::of(kind.as_str().as_bytes()));
            assert_eq!(handle.to_string().parse::<Handle>().unwrap(), handle);
        }
    }

    #[test]
    fn near_misses_are_refused_and_the_forms_listed() {
        let hex = Digest::of(b"").to_hex();
        for bad in [
            format!("z://blob/{hex}/"),
            format!("z://blub/{hex}"),
            format!("Z://blob/{hex}"),
            "z://blob/".into(),
        ] {
            let error = bad.parse::<Handle>().unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidInput);
            assert_eq!(error.accepted.len(), 4);
        }
    }
}
