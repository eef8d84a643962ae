//! What a host does with a store beside running cells: checks, exports, collections, migrations.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;
use zerostack::contracts::json::from_text;
use zerostack::contracts::{Error, Handle, SessionName};
use zerostack::evidence::{self, ReceiptSchema};
use zerostack::{GcOptions, KernelConfig, ZeroKernel};

use crate::host::text;
use crate::mailbox::Call;

/// Does one of these calls for an open kernel; none if it has another name.
///
/// # Errors
/// Those of the method; `invalid_input` for arguments that do not fit it.
pub fn call(
    open: impl FnOnce() -> Result<ZeroKernel, Error>,
    call: &Call,
    method: &str,
    arguments: &str,
) -> Option<Result<String, Error>> {
    let done = || -> Result<Option<String>, Error> {
        Ok(Some(match method {
            "verify" => {
                let Verify { session, key } = from_text(arguments)?;
                text(&open()?.verify(session.as_ref(), key.as_deref(), &call.cancel)?)?
            }
            "gc" => {
                let Gc { keep_events } = from_text(arguments)?;
                text(&open()?.gc(&GcOptions { keep_events }, &call.cancel)?)?
            }
            "sessions" => text(&open()?.sessions()?)?,
            "event" => {
                let OfEvent { event } = from_text(arguments)?;
                text(&open()?.event(&event)?)?
            }
            "object" => {
                let Of { handle } = from_text(arguments)?;
                let bytes = open()?.objects().get(&handle.digest)?;
                text(&json!({ "base64": STANDARD.encode(bytes) }))?
            }
            "exportEvent" => {
                let OfEvent { event } = from_text(arguments)?;
                text(&open()?.export_event(&event)?)?
            }
            "exportChain" => text(&open()?.export_chain()?)?,
            "receipts" => {
                let Receipts { event, schema, issuer } = from_text(arguments)?;
                text(&open()?.receipts(&event, schema, &issuer)?)?
            }
            "whyNoPrivateView" => text(&open()?.why_no_private_view()?)?,
            _ => return Ok(None),
        }))
    };
    done().transpose()
}

/// Does one of the calls that must not open the store as a kernel does; none if it has another name.
///
/// # Errors
/// Those of the method.
pub fn call_unopened(config: &KernelConfig, call: &Call, method: &str) -> Option<Result<String, Error>> {
    match method {
        "migrate" => Some(zerostack::migrate(config).and_then(|done| text(&done))),
        "examine" => Some(zerostack::examine(config, &call.cancel).and_then(|report| text(&report))),
        _ => None,
    }
}

/// Does one of the calls that need no workspace.
///
/// # Errors
/// `invalid_input` for arguments that do not fit it.
pub fn call_alone(method: &str, arguments: &str) -> Result<String, Error> {
    match method {
        "verifyEvidence" => {
            let Evidence { file, key } = from_text(arguments)?;
            text(&evidence::verify(file.as_bytes(), key.as_deref()))
        }
        _ => Err(Error::invalid(format!("`{method}` is not a method"))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Verify {
    session: Option<SessionName>,
    key: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Gc {
    keep_events: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfEvent {
    event: Handle,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Of {
    handle: Handle,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Receipts {
    event: Handle,
    schema: ReceiptSchema,
    issuer: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Evidence {
    file: String,
    key: Option<String>,
}
