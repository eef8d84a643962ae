//! Signatures of events by the host's key: Ed25519 (RFC 8032).

use std::fmt;

use ed25519_dalek::{Signer, Verifier, VerifyingKey};
use zero_contracts::event::Signature;
use zero_contracts::{Error, ZeroKernelEvent};

use crate::config::Result;
use crate::record::canonical_json;

pub(super) const ALGORITHM: &str = "ed25519";

/// A host's key for signing events. It is never stored; what a host does to keep it is the host's business.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Takes the 32 secret bytes of an Ed25519 key.
    pub fn from_bytes(secret: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(secret))
    }

    /// Reads a secret key from 64 hexadecimal digits.
    ///
    /// # Errors
    /// `invalid_input` for anything else.
    pub fn from_hex(text: &str) -> Result<Self> {
        bytes(text.trim())
            .map(|secret| Self::from_bytes(&secret))
            .ok_or_else(|| Error::invalid("a signing key is 64 hexadecimal digits").with_path("signingKey"))
    }

    /// Returns the public key: 64 lowercase hexadecimal digits.
    pub fn public(&self) -> String {
        hex(self.0.verifying_key().as_bytes())
    }

    /// Signs an event: over its canonical form without a signature.
    ///
    /// # Errors
    /// `internal` for an event that JSON cannot hold.
    pub(crate) fn sign(&self, event: &mut ZeroKernelEvent) -> Result<()> {
        event.signature = None;
        let signature = self.0.sign(&canonical_json(event)?);
        event.signature = Some(Signature {
            algorithm: ALGORITHM.to_owned(),
            key: self.public(),
            value: hex(&signature.to_bytes()),
        });
        Ok(())
    }
}

/// Shows the public half alone.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public())
    }
}

/// Tells whether `signature` is that of `message`; refuses keys of small order and other weak forms.
pub(super) fn is_signed(message: &[u8], signature: &Signature) -> bool {
    let parts = bytes::<32>(&signature.key).zip(bytes::<64>(&signature.value));
    parts.is_some_and(|(key, value)| {
        VerifyingKey::from_bytes(&key).is_ok_and(|key| {
            let value = ed25519_dalek::Signature::from_bytes(&value);
            !key.is_weak() && key.verify(message, &value).is_ok()
        })
    })
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let digits = hex.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
    }
    Some(bytes)
}
