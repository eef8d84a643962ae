//! The history of a workspace's sessions: exports, and the verification of stored chains.

use zero_contracts::{Error, Handle, HandleKind, SessionName};

use crate::config::Result;
use crate::evidence::{self, ExportedChain, ExportedEvent, Verification};
use crate::kernel::ZeroKernel;

impl ZeroKernel {
    /// Returns the names of the workspace's sessions, in order.
    ///
    /// # Errors
    /// `corrupt`, `io`, `busy`.
    pub fn sessions(&self) -> Result<Vec<SessionName>> {
        self.kernel.sessions.catch_up(&*self.kernel.files)?;
        self.kernel.sessions.names()
    }

    /// Exports an event as a file that [`evidence::verify`] checks with nothing else.
    ///
    /// # Errors
    /// `invalid_input` for another handle; `not_found`, `corrupt`, `io`.
    pub fn export_event(&self, event: &Handle) -> Result<ExportedEvent> {
        if event.kind != HandleKind::Event {
            return Err(Error::invalid(format!("`{event}` does not name an event")).with_path("event"));
        }
        ExportedEvent::of_bytes(&self.kernel.objects.get(&event.digest)?)
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
            .map(|entry| ExportedEvent::of_bytes(&kernel.objects.get(&entry.event)?))
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
