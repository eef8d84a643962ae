//! Portable receipts: small statements about committed effects that any runtime can recompute.
//!
//! Both schemas hash sorted JSON with SHA-256: object keys in UTF-16 order, numbers and strings as ECMAScript's
//! `JSON.stringify` writes them, no white space. Those are the rules of RFC 8785. The content hash is over `{kind, payload,
//! subjectKey}`. The digest of `dreamnet.receipt.v1` is over `{contentHash, issuer, kind, subjectKey}`; that of `receipt.v1`
//! is over `{issuer, subjectHash}`, where the subject's hash is the bare hexadecimal content hash, and is bare itself.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use zero_contracts::edit::{EditReceipt, ReceiptStatus};
use zero_contracts::response::Disposition;
use zero_contracts::{Handle, JsonValue, ZeroKernelEvent};

use super::signing::hex;
use crate::config::Result;
use crate::record::canonical_json;

const PREFIX: &str = "sha256:dreamnet-sorted-json:v0:";

/// Which rules a receipt's digest follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReceiptSchema {
    /// `receipt.v1`
    #[serde(rename = "receipt.v1")]
    V1,
    /// `dreamnet.receipt.v1`
    #[serde(rename = "dreamnet.receipt.v1")]
    Dreamnet,
}

/// What a receipt is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// What kind of thing happened.
    pub kind: String,
    /// The facts.
    pub payload: JsonValue,
    /// What it happened to: a stable name.
    pub subject_key: String,
}

/// A statement by an issuer about a subject, with the hash of the one and the digest of both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The rules.
    pub schema: ReceiptSchema,
    /// Who says so.
    pub issuer: String,
    /// What about.
    pub subject: Subject,
    /// Hash of the subject.
    pub content_hash: String,
    /// Digest of the receipt.
    pub digest: String,
}

impl Receipt {
    /// Issues a receipt.
    ///
    /// # Errors
    /// `internal` for a payload that JSON cannot hold.
    pub fn issue(schema: ReceiptSchema, issuer: impl Into<String>, subject: Subject) -> Result<Self> {
        let issuer = issuer.into();
        let content_hash = content_hash(&subject)?;
        let digest = digest(schema, &issuer, &subject, &content_hash)?;
        Ok(Self {
            schema,
            issuer,
            subject,
            content_hash,
            digest,
        })
    }

    /// Issues one receipt for each effect that a cell committed; none for a cell that committed nothing.
    ///
    /// # Errors
    /// `internal` for an effect that JSON cannot hold.
    pub fn of_event(
        schema: ReceiptSchema,
        issuer: &str,
        handle: &Handle,
        event: &ZeroKernelEvent,
    ) -> Result<Vec<Self>> {
        if event.disposition != Disposition::Committed {
            return Ok(Vec::new());
        }
        let committed = event
            .receipts
            .iter()
            .filter(|receipt| receipt.status == ReceiptStatus::Committed);
        committed
            .map(|effect| Self::issue(schema, issuer, subject(handle, event, effect)))
            .collect()
    }

    /// Tells whether the content hash is that of the subject.
    pub(super) fn has_its_content(&self) -> bool {
        content_hash(&self.subject).is_ok_and(|hash| hash == self.content_hash)
    }

    /// Tells whether the digest is that of issuer and subject.
    pub(super) fn has_its_digest(&self) -> bool {
        digest(self.schema, &self.issuer, &self.subject, &self.content_hash).is_ok_and(|digest| digest == self.digest)
    }
}

fn subject(handle: &Handle, event: &ZeroKernelEvent, effect: &EditReceipt) -> Subject {
    Subject {
        kind: "zerostack.effect".to_owned(),
        payload: JsonValue(json!({
            "session": event.session,
            "path": effect.path,
            "before": effect.before.as_ref().and_then(|state| state.digest),
            "after": effect.after.as_ref().and_then(|state| state.digest),
        })),
        subject_key: format!("{handle}#{}", effect.path),
    }
}

fn content_hash(subject: &Subject) -> Result<String> {
    sorted_json_digest(&json!({
        "kind": subject.kind,
        "payload": subject.payload,
        "subjectKey": subject.subject_key,
    }))
}

fn digest(schema: ReceiptSchema, issuer: &str, subject: &Subject, content_hash: &str) -> Result<String> {
    match schema {
        ReceiptSchema::Dreamnet => sorted_json_digest(&json!({
            "contentHash": content_hash,
            "issuer": issuer,
            "kind": subject.kind,
            "subjectKey": subject.subject_key,
        })),
        ReceiptSchema::V1 => bare(&json!({
            "issuer": issuer,
            "subjectHash": content_hash.strip_prefix(PREFIX).unwrap_or(content_hash),
        })),
    }
}

/// Returns the prefixed SHA-256 digest of a value's sorted JSON.
///
/// # Errors
/// `internal` for a value that JSON cannot hold.
pub fn sorted_json_digest(value: &Value) -> Result<String> {
    Ok(format!("{PREFIX}{}", bare(value)?))
}

fn bare(value: &Value) -> Result<String> {
    Ok(hex(&Sha256::digest(canonical_json(value)?)))
}
