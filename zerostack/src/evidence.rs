//! Evidence: what a session's events prove to somebody who has nothing but a file.
//!
//! An event has two digests. *Integrity* is the BLAKE3 digest of its canonical bytes (RFC 8785): the name it has in the
//! store and in the next event's `previous`, so that events form a chain. *Identity* is that of the event without what differs
//! between equal attempts: time, measurements, cell id, chain link, handles, signature. Equal retries have equal identities.
//!
//! [`verify`] reads an exported event, an exported chain or a portable receipt, and says of each check whether it is valid,
//! invalid, or was not made. What it does not know is invalid.

mod digests;
mod export;
mod receipt;
mod signing;
mod verify;

pub use digests::{identity, integrity};
pub use export::{ExportedChain, ExportedEvent};
pub use receipt::{Receipt, ReceiptSchema, Subject, sorted_json_digest};
pub use signing::SigningKey;
pub(crate) use verify::verify_exported;
pub use verify::{Check, Verdict, Verification, verify};
