//! The history of a workspace's sessions: exports, and the verification of stored chains.

use serde::Serialize;
use zero_contracts::files::Damage;
use zero_contracts::{CancelToken, Digest, Error, Handle, HandleKind, SessionName, ZeroKernelEvent};

use crate::config::Result;
use crate::evidence::{self, ExportedChain, ExportedEvent, Receipt, ReceiptSchema, Verdict, Verification};
use crate::kernel::ZeroKernel;

/// What a check of a whole store found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreVerification {
    /// Whether nothing is damaged and no check of a chain is invalid.
    pub valid: bool,
    /// Objects and journal frames that are damaged, and the outbox if it is.
    pub damage: Vec<Damage>,
    /// What the chains of events prove.
    pub chains: Vec<ChainVerification>,
}

/// What a session's chain of events proves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainVerification {
    /// The session.
    pub session: SessionName,
    /// What was found.
    pub verification: Verification,
}

impl ZeroKernel {
    /// Returns the names of the workspace's sessions, in order.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn sessions(&self) -> Result<Vec<SessionName>> {
        self.kernel.sessions.catch_up(&*self.kernel.files)?;
        self.kernel.sessions.names()
    }

    /// Returns an event.
    ///
    /// # Errors
    /// `invalid_input` for another handle; `not_found`, `corrupt`, `io`.
    pub fn event(&self, event: &Handle) -> Result<ZeroKernelEvent> {
        self.kernel.event(&event_digest(event)?)
    }

    /// Exports an event as a file that [`evidence::verify`] checks with nothing else.
    ///
    /// # Errors
    /// `invalid_input` for another handle; `not_found`, `corrupt`, `io`.
    pub fn export_event(&self, event: &Handle) -> Result<ExportedEvent> {
        ExportedEvent::of_bytes(&self.kernel.objects.get(&event_digest(event)?)?)
    }

    /// Issues a portable receipt for each effect that the cell of an event committed; none if it committed nothing.
    ///
    /// # Errors
    /// `invalid_input` for another handle; `not_found`, `corrupt`, `io`.
    pub fn receipts(&self, event: &Handle, schema: ReceiptSchema, issuer: &str) -> Result<Vec<Receipt>> {
        Receipt::of_event(schema, issuer, event, &self.event(event)?)
    }

    /// Checks every stored object and journal frame, the outbox, and the chain of every session, or of one. With `key` (64 hexadecimal
    /// digits) every event must be signed by it.
    ///
    /// # Errors
    /// `io`, `busy`, and `corrupt` for a database that cannot be read; `cancelled` and `deadline` from the token. What is
    /// damaged is not an error but the answer.
    pub fn verify(
        &self,
        only: Option<&SessionName>,
        key: Option<&str>,
        token: &CancelToken,
    ) -> Result<StoreVerification> {
        let mut damage = self.kernel.files.verify(token)?;
        damage.extend(crate::outbox::examine(&self.kernel.places.store));
        let mut chains = Vec::new();
        for session in self.sessions()? {
            token.check()?;
            if only.is_none_or(|only| *only == session) {
                let verification = self.verify_chain(&session, key)?;
                chains.push(ChainVerification { session, verification });
            }
        }
        let sound = |chain: &ChainVerification| {
            let mut checks = chain.verification.checks.iter();
            checks.all(|check| check.verdict != Verdict::Invalid)
        };
        Ok(StoreVerification {
            valid: damage.is_empty() && chains.iter().all(sound),
            damage,
            chains,
        })
    }

    /// Exports the session's chain, as far as it is kept.
    ///
    /// # Errors
    /// `not_found` or `corrupt` for a damaged event; `io`, `busy`.
    pub fn export_chain(&self) -> Result<ExportedChain> {
        self.chain(&self.scope.session)
    }

    fn chain(&self, session: &SessionName) -> Result<ExportedChain> {
        let kernel = &self.kernel;
        kernel.sessions.catch_up(&*kernel.files)?;
        let pruned = kernel.sessions.pruned(session)?.events;
        let entries = kernel.sessions.events(session, u32::MAX)?;
        let events = entries
            .iter()
            .rev()
            .map(|entry| ExportedEvent::of_bytes(&kernel.objects.get(&entry.handle.digest)?))
            .collect::<Result<Vec<_>>>()?;
        Ok(ExportedChain::new(session.clone(), pruned, events))
    }

    /// Checks a session's stored chain: every event, every link, the link to what was pruned, and that the chain ends
    /// where the session stands. With `key` every event must be signed by it.
    ///
    /// # Errors
    /// `io`, `busy`, and `corrupt` for a database that cannot be read. A damaged event is not an error but the answer.
    pub fn verify_chain(&self, session: &SessionName, key: Option<&str>) -> Result<Verification> {
        let chain = match self.chain(session) {
            Ok(chain) => chain,
            Err(error) => return Ok(Verification::broken(format!("an event cannot be read: {error}"))),
        };
        let mut verification = evidence::verify_exported(&chain, key);
        let sessions = &self.kernel.sessions;
        let (head, pruned) = (sessions.head(session)?, sessions.pruned(session)?);
        if head.event != chain.events.last().map(|event| event.integrity) {
            verification.add("head", false, "the chain does not end where the session stands");
        }
        let first = chain.events.first().and_then(|first| first.event["previous"].as_str());
        if pruned.anchor.is_some() && first != pruned.anchor.map(|anchor| anchor.to_string()).as_deref() {
            verification.add(
                "anchor",
                false,
                "the first event kept does not follow the last one that was pruned",
            );
        }
        Ok(verification)
    }
}

/// The digest that the handle of an event names.
pub(crate) fn event_digest(event: &Handle) -> Result<Digest> {
    if event.kind == HandleKind::Event {
        return Ok(event.digest);
    }
    Err(Error::invalid(format!("`{event}` does not name an event"))
        .with_path("event")
        .with_accepted(["z://event/<64 hexadecimal digits>"]))
}
