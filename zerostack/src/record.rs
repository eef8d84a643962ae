//! Canonical JSON and the durable record of a cell.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::Value;
use zero_contracts::files::Durability;
use zero_contracts::{CellId, Digest, Error, ErrorKind, Event, Handle, SessionName};

use crate::config::Result;
use crate::kernel::Kernel;
use crate::sessions::Head;

/// Writes the canonical JSON form of RFC 8785: keys in UTF-16 order, ECMAScript numbers, no white space.
///
/// # Errors
/// `internal` for a value that JSON cannot hold.
pub fn canonical_json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_jcs::to_vec(value).map_err(|e| Error::new(ErrorKind::Internal, format!("cannot write canonical JSON: {e}")))
}

/// Stores an event in its canonical form; its digest is its integrity digest.
///
/// # Errors
/// `budget`, `io`.
pub(crate) fn store_event(kernel: &Kernel, event: &mut Event) -> Result<Digest> {
    kernel.objects.put(&canonical_json(event)?)
}

impl Kernel {
    /// Moves a session's head by a cell without file effects; the caller holds the head lock. What changes the state
    /// survives what the configured durability says; what only adds an event is not flushed.
    ///
    /// # Errors
    /// `io`, `busy`.
    pub(crate) fn append(&self, session: &SessionName, cell: &CellId, head: Head, changes_state: bool) -> Result<()> {
        let flush = changes_state && self.config.durability == Durability::Power;
        if flush {
            self.files.flush()?;
        }
        self.sessions.append(session, cell, head, flush)
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    // A clock before 1970 counts as 1970; u64 holds 584 million years of milliseconds.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

/// Collects every handle that a value refers to, in order of appearance, each once.
pub fn handles_in(value: &Value) -> Vec<Handle> {
    fn visit(value: &Value, found: &mut Vec<Handle>) {
        match value {
            Value::String(text) => {
                for (at, _) in text.match_indices("z://") {
                    let end = text[at..].find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, ':' | '/')));
                    let word = &text[at..end.map_or(text.len(), |end| at + end)];
                    if let Ok(handle) = word.parse()
                        && !found.contains(&handle)
                    {
                        found.push(handle);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| visit(item, found)),
            Value::Object(fields) => fields.values().for_each(|field| visit(field, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    visit(value, &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use zero_contracts::Digest;

    #[test]
    fn canonical_form_follows_rfc_8785() {
        // Section 3.2.2 and 3.2.3 of RFC 8785: numbers as ECMAScript writes them, keys in UTF-16 order.
        let value =
            json!({"\u{20ac}": 333333333.3333333_f64, "\r": 1e30, "1": 4.50, "\u{1f600}": 2e-3, "\u{fb33}": 1e-27});
        assert_eq!(
            String::from_utf8(canonical_json(&value).unwrap()).unwrap(),
            "{\"\\r\":1e+30,\"1\":4.5,\"€\":333333333.3333333,\"😀\":0.002,\"\u{fb33}\":1e-27}"
        );
    }

    #[test]
    fn handles_are_found_inside_texts_once() {
        let handle = Handle::blob(Digest::of(b"x"));
        let value = json!({"a": [format!("see {handle}, {handle}."), "z://blob/zz"], "b": handle});
        assert_eq!(handles_in(&value), [handle]);
    }
}
