//! Checking a file of evidence with nothing but the file.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use zero_contracts::Digest;
use zero_contracts::event::{EVENT_SCHEMA, Signature};

use super::digests::identity_of;
use super::export::{CHAIN, EVENT};
use super::receipt::Receipt;
use super::signing::{ALGORITHM, is_signed};
use super::{ExportedChain, ExportedEvent};
use crate::record::canonical_json;

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// It holds.
    Valid,
    /// It does not hold.
    Invalid,
    /// The file does not tell.
    NotChecked,
}

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What: `schema`, `integrity`, `identity`, `chain`, `signature`, `content`, `digest`.
    pub name: &'static str,
    /// What was found.
    pub verdict: Verdict,
    /// What that means here.
    pub detail: String,
}

/// What a file of evidence proves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Whether nothing is invalid and something is valid.
    pub valid: bool,
    /// How far it goes: `signed`, or `integrity only` (nobody vouches for the content).
    pub scope: &'static str,
    /// The checks, in the order they were made.
    pub checks: Vec<Check>,
}

impl Verification {
    fn of(checks: Vec<Check>) -> Self {
        let any = |verdict| checks.iter().any(|check| check.verdict == verdict);
        let signed = checks
            .iter()
            .any(|check| check.name == "signature" && check.verdict == Verdict::Valid);
        Self {
            valid: any(Verdict::Valid) && !any(Verdict::Invalid),
            scope: if signed { "signed" } else { "integrity only" },
            checks,
        }
    }

    /// A file that could not even be looked at.
    pub(crate) fn broken(why: String) -> Self {
        Self::of(vec![check("chain", false, "", why)])
    }

    /// Adds a check of something that the file alone cannot tell.
    pub(crate) fn add(&mut self, name: &'static str, holds: bool, detail: &str) {
        self.checks.push(check(name, holds, detail, detail));
        self.valid &= holds;
    }

    /// Returns what one check found.
    pub fn verdict(&self, name: &str) -> Option<Verdict> {
        self.checks
            .iter()
            .find(|check| check.name == name)
            .map(|check| check.verdict)
    }
}

fn check(name: &'static str, holds: bool, good: impl Into<String>, bad: impl Into<String>) -> Check {
    Check {
        name,
        verdict: if holds { Verdict::Valid } else { Verdict::Invalid },
        detail: if holds { good.into() } else { bad.into() },
    }
}

fn not_checked(name: &'static str, detail: impl Into<String>) -> Check {
    Check {
        name,
        verdict: Verdict::NotChecked,
        detail: detail.into(),
    }
}

/// Checks an exported event, an exported chain or a receipt. With `key` (64 hexadecimal digits) a signature must be that
/// key's. What is not known is invalid.
pub fn verify(file: &[u8], key: Option<&str>) -> Verification {
    let unknown = |why: String| Verification::of(vec![check("schema", false, "", why)]);
    let value: Value = match serde_json::from_slice(file) {
        Ok(value) => value,
        Err(e) => return unknown(format!("the file is not JSON: {e}")),
    };
    let schema = value["schema"].as_str().unwrap_or_default().to_owned();
    let malformed = |e: serde_json::Error| unknown(format!("not a {schema}: {e}"));
    match schema.as_str() {
        EVENT => {
            serde_json::from_value(value).map_or_else(malformed, |event| Verification::of(event_checks(&event, key)))
        }
        CHAIN => {
            serde_json::from_value(value).map_or_else(malformed, |chain| Verification::of(chain_checks(&chain, key)))
        }
        "receipt.v1" | "dreamnet.receipt.v1" => {
            serde_json::from_value(value).map_or_else(malformed, |receipt| Verification::of(receipt_checks(&receipt)))
        }
        "" => unknown("the file names no schema".into()),
        other => unknown(format!(
            "the schema `{other}` is not known; known are {EVENT}, {CHAIN}, receipt.v1, dreamnet.receipt.v1"
        )),
    }
}

/// Checks a chain that was exported by this process.
pub(crate) fn verify_exported(chain: &ExportedChain, key: Option<&str>) -> Verification {
    Verification::of(chain_checks(chain, key))
}

fn receipt_checks(receipt: &Receipt) -> Vec<Check> {
    vec![
        check("schema", true, "a portable receipt", ""),
        check(
            "content",
            receipt.has_its_content(),
            "the content hash is that of the subject",
            "the content hash is not that of the subject",
        ),
        check(
            "digest",
            receipt.has_its_digest(),
            "the digest is that of issuer and subject",
            "the digest is not that of issuer and subject",
        ),
        not_checked("signature", "receipts carry none: integrity only"),
    ]
}

fn event_checks(exported: &ExportedEvent, key: Option<&str>) -> Vec<Check> {
    let event = &exported.event;
    let schema = event["schema"].as_str().unwrap_or_default();
    let same = |digest: Option<Digest>, claimed: &Digest| digest.is_some_and(|digest| digest == *claimed);
    let bytes = canonical_json(event).ok();
    let mut checks = vec![
        check(
            "schema",
            schema == EVENT_SCHEMA,
            format!("an event of {EVENT_SCHEMA}"),
            format!("the event's schema `{schema}` is not known"),
        ),
        check(
            "integrity",
            same(bytes.as_deref().map(Digest::of), &exported.integrity),
            "the event is what its digest names",
            "the event is not what its digest names",
        ),
        check(
            "identity",
            same(identity_of(event.clone()).ok(), &exported.identity),
            "the identity is the event's",
            "the identity is not the event's",
        ),
    ];
    checks.push(signature(event, key));
    checks.push(match event["previous"].as_str() {
        None => not_checked("chain", "the event says it is its session's first"),
        Some(previous) => not_checked("chain", format!("the event before it, {previous}, is not in the file")),
    });
    checks
}

fn signature(event: &Value, key: Option<&str>) -> Check {
    let Some(signature) = event.get("signature") else {
        return match key {
            None => not_checked("signature", "unsigned: integrity only"),
            Some(_) => check("signature", false, "", "unsigned, though a key was given"),
        };
    };
    let mut unsigned = event.clone();
    if let Value::Object(members) = &mut unsigned {
        members.remove("signature");
    }
    let signature: Option<Signature> = serde_json::from_value(signature.clone()).ok();
    let (Some(signature), Ok(message)) = (signature, canonical_json(&unsigned)) else {
        return check("signature", false, "", "the signature is malformed");
    };
    if signature.algorithm != ALGORITHM {
        let why = format!("the algorithm `{}` is not known", signature.algorithm);
        return check("signature", false, "", why);
    }
    if key.is_some_and(|key| !key.eq_ignore_ascii_case(&signature.key)) {
        let why = format!("signed by another key, {}", signature.key);
        return check("signature", false, "", why);
    }
    let good = match key {
        Some(_) => "signed by the given key".to_owned(),
        None => format!(
            "signed by the key {}; whose that is, the file cannot tell",
            signature.key
        ),
    };
    check(
        "signature",
        is_signed(&message, &signature),
        good,
        "the signature is not that of the event",
    )
}

fn chain_checks(chain: &ExportedChain, key: Option<&str>) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    // Each event's own checks count for the chain; the first that does not hold speaks for all.
    for (n, exported) in chain.events.iter().enumerate() {
        for found in event_checks(exported, key)
            .into_iter()
            .filter(|check| check.name != "chain")
        {
            let found = Check {
                detail: if found.verdict == Verdict::Invalid {
                    format!("event {n}: {}", found.detail)
                } else {
                    found.detail
                },
                ..found
            };
            match checks.iter_mut().find(|check| check.name == found.name) {
                None => checks.push(found),
                Some(kept) if worse(found.verdict) > worse(kept.verdict) => *kept = found,
                Some(_) => {}
            }
        }
    }
    let previous = |event: &ExportedEvent| event.event["previous"].as_str().map(str::to_owned);
    let broken = chain
        .events
        .windows(2)
        .position(|pair| previous(&pair[1]) != Some(pair[0].integrity.to_string()));
    let foreign = chain
        .events
        .iter()
        .position(|exported| exported.event["session"].as_str() != Some(chain.session.as_str()));
    checks.push(match (broken, foreign, chain.events.first()) {
        (Some(n), _, _) => check("chain", false, "", format!("event {} does not follow event {n}", n + 1)),
        (None, Some(n), _) => check("chain", false, "", format!("event {n} is another session's")),
        (None, None, None) => not_checked("chain", "the chain holds no event"),
        (None, None, Some(first)) => check(
            "chain",
            true,
            match previous(first) {
                None => format!("{} event(s), from the session's first on", chain.events.len()),
                Some(anchor) => format!(
                    "{} event(s) that follow {anchor}, which is not in the file",
                    chain.events.len()
                ),
            },
            "",
        ),
    });
    checks
}

/// Of several events' verdicts on one question, which one speaks for the chain.
fn worse(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Valid => 0,
        Verdict::NotChecked => 1,
        Verdict::Invalid => 2,
    }
}
