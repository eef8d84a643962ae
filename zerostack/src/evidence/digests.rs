//! The two digests of an event.

use serde_json::Value;
use zero_contracts::{Digest, Error, ErrorKind, Handle, ZeroKernelEvent};

use crate::config::Result;
use crate::record::canonical_json;

/// Members of an event that differ between equal attempts.
const INCIDENTAL: [&str; 7] = ["atMs", "cell", "console", "handles", "ledger", "previous", "signature"];

/// Returns an event's integrity digest: that of its canonical bytes.
///
/// # Errors
/// `internal` for an event that JSON cannot hold.
pub fn integrity(event: &ZeroKernelEvent) -> Result<Digest> {
    Ok(Digest::of(&canonical_json(event)?))
}

/// Returns an event's identity digest: that of the canonical form without what differs between equal attempts.
///
/// # Errors
/// `internal` for an event that JSON cannot hold.
pub fn identity(event: &ZeroKernelEvent) -> Result<Digest> {
    let event = serde_json::to_value(event)
        .map_err(|e| Error::new(ErrorKind::Internal, format!("cannot write an event as JSON: {e}")))?;
    identity_of(event)
}

/// The identity of an event that is JSON, perhaps with members that this build does not know.
pub(super) fn identity_of(mut event: Value) -> Result<Digest> {
    if let Value::Object(members) = &mut event {
        for name in INCIDENTAL {
            members.remove(name);
        }
    }
    drop_handles(&mut event);
    Ok(Digest::of(&canonical_json(&event)?))
}

/// Removes members and elements that are a handle.
fn drop_handles(value: &mut Value) {
    let is_handle = |value: &Value| value.as_str().is_some_and(|text| text.parse::<Handle>().is_ok());
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !is_handle(member));
            members.values_mut().for_each(drop_handles);
        }
        Value::Array(elements) => {
            elements.retain(|element| !is_handle(element));
            elements.iter_mut().for_each(drop_handles);
        }
        _ => {}
    }
}
