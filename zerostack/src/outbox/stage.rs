//! Staging: a cell asks for an effect; nothing happens before its commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use zero_contracts::apply::{EffectReceipt, EffectRequest, EffectStatus};
use zero_contracts::effect::{EFFECT_KEY_BYTES, EFFECT_PAYLOAD_BYTES};
use zero_contracts::{
    CancelToken, Digest, EffectIntent, EffectRecord, EffectState, Error, ErrorKind, Handle, ObjectStore, Result,
};

use crate::cell::{Cell, lock};
use crate::record::canonical_json;

/// The intents of one cell.
#[derive(Default)]
pub(crate) struct Intents(Vec<(EffectIntent, Vec<u8>)>);

impl Intents {
    /// The channels that are to be called, each once.
    pub(crate) fn channels(&self) -> BTreeSet<String> {
        self.0.iter().map(|(intent, _)| intent.effect.clone()).collect()
    }

    fn find(&self, handle: Handle) -> Option<&EffectIntent> {
        self.0
            .iter()
            .map(|(intent, _)| intent)
            .find(|intent| intent.handle() == handle)
    }

    /// Returns a staged effect as its own cell sees it.
    pub(crate) fn record(&self, handle: Handle) -> Option<EffectRecord> {
        let (intent, bytes) = self.0.iter().find(|(intent, _)| intent.handle() == handle)?;
        Some(EffectRecord::new(intent, Digest::of(bytes), EffectState::Staged))
    }

    /// Stores the intents for the commit record to name.
    pub(crate) fn store(&self, objects: &dyn ObjectStore) -> Result<Vec<EffectRecord>> {
        self.0
            .iter()
            .map(|(intent, bytes)| {
                let digest = objects.put(bytes)?;
                Ok(EffectRecord::new(intent, digest, EffectState::Prepared).without_payload())
            })
            .collect()
    }
}

/// Stages an effect, or answers for one that is there already.
///
/// The workspace lease is acquired first: from then on no other cell commits a key that this one has looked for.
pub(crate) fn stage(cell: &Arc<Cell>, request: EffectRequest, token: &CancelToken) -> Result<EffectReceipt> {
    let kernel = &cell.kernel;
    let channels = &kernel.outbox.config.channels;
    let Some(channel) = channels.get(&request.effect) else {
        let error = Error::new(
            ErrorKind::Unsupported,
            format!("the host registered no effect channel `{}`", request.effect),
        );
        return Err(error.with_path("effect").with_accepted(channels.keys().cloned()));
    };
    if !(1..=EFFECT_KEY_BYTES).contains(&request.key.len()) || request.key.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "a key has 1 to {EFFECT_KEY_BYTES} bytes and no control characters: take it from what the effect is about"
        ))
        .with_path("key"));
    }
    let bytes = canonical_json(&request.payload)?.len();
    if bytes > EFFECT_PAYLOAD_BYTES {
        return Err(Error::invalid(format!(
            "the payload has {bytes} bytes; {EFFECT_PAYLOAD_BYTES} may be sent: put the rest into a file, and its path here"
        ))
        .with_path("payload"));
    }
    channel.check(&request.key, &request.payload.0)?;
    cell.lease(token)?;
    kernel.outbox.catch_up(&*kernel.files, &*kernel.objects)?;
    let intent = EffectIntent::new(request, cell.session.clone(), cell.id.clone());
    let handle = intent.handle();
    let mut intents = lock(&cell.intents);
    let (known, evidence) = match intents.find(handle) {
        Some(staged) => (Some(staged.payload.clone()), None),
        None => {
            let (store, workspace) = kernel.outbox.open()?;
            match store.effect(&workspace, &handle.digest)? {
                Some(record) => (record.payload, record.evidence),
                None => (None, None),
            }
        }
    };
    match known {
        None => {
            let bytes = canonical_json(&intent)?;
            intents.0.push((intent, bytes));
            Ok(EffectReceipt {
                status: EffectStatus::Staged,
                handle,
                evidence: None,
            })
        }
        Some(payload) if canonical_json(&payload)? == canonical_json(&intent.payload)? => Ok(EffectReceipt {
            status: EffectStatus::Duplicate,
            handle,
            evidence,
        }),
        Some(_) => Err(Error::new(
            ErrorKind::Conflict,
            format!(
                "the key `{}` of `{}` stands for another payload already: z.read('{handle}') shows it; a new action needs a \
                 key of its own",
                intent.key, intent.effect
            ),
        )
        .with_path("key")),
    }
}
