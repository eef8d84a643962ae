//! What the kernel offers its host about effects and leases.

use std::time::Duration;

use zero_contracts::{CancelToken, EffectRecord, Error, ErrorKind, Handle, HandleKind, Result};

use super::dispatch::{Dispatcher, Purpose};
use super::{EffectFilter, EffectStep, NamedLeases, Reconciled};
use crate::cell::{Cell, lock};
use crate::kernel::{Kernel, ZeroKernel};

/// How long a dispatch or a reconciliation waits for another dispatcher of the same channel.
const WAIT: Duration = Duration::from_secs(10);

impl ZeroKernel {
    /// Settles effects that are pending: dispatches what is prepared, asks the probes about what a dead dispatcher left.
    /// Runs when a kernel opens, and whenever the host calls this.
    ///
    /// # Errors
    /// `cancelled` and `deadline` from the token; those of the store. What was settled stays so.
    pub fn reconcile(&self, token: &CancelToken) -> Result<Reconciled> {
        let mut dispatcher = Dispatcher::new(&self.kernel)?;
        dispatcher.reconcile(WAIT, token)?;
        Ok(dispatcher.report)
    }

    /// Lists effects in the order of their commits.
    ///
    /// # Errors
    /// `io`, `busy`, `corrupt`.
    pub fn effects(&self, filter: &EffectFilter) -> Result<Vec<EffectRecord>> {
        let kernel = &*self.kernel;
        kernel.outbox.catch_up(&*kernel.files, &*kernel.objects)?;
        let (store, workspace) = kernel.outbox.open()?;
        store.effects(&workspace, filter)
    }

    /// Returns one effect by its handle.
    ///
    /// # Errors
    /// `invalid_input` for another kind of handle, `not_found`; `io`, `busy`, `corrupt`.
    pub fn effect(&self, handle: &Handle) -> Result<EffectRecord> {
        self.kernel.effect(handle)
    }

    /// Gives an effect up: it is never sent (again), and an event says so.
    ///
    /// # Errors
    /// `conflict` for one that is done or under way; `not_found`; `io`, `busy`.
    pub fn abandon_effect(&self, handle: &Handle, why: &str) -> Result<EffectRecord> {
        self.kernel.effect(handle)?;
        Dispatcher::new(&self.kernel)?.abandon(&handle.digest, why)
    }

    /// Prepares a quarantined effect again; the next reconciliation tries it once more.
    ///
    /// # Errors
    /// `conflict` for one that is not quarantined; `not_found`; `io`, `busy`.
    pub fn retry_effect(&self, handle: &Handle) -> Result<EffectRecord> {
        self.kernel.effect(handle)?;
        Dispatcher::new(&self.kernel)?.retry(&handle.digest)
    }

    /// The named leases of the outbox's store.
    ///
    /// # Errors
    /// `io`, `busy`, `unsupported` if the store cannot be opened.
    pub fn leases(&self) -> Result<NamedLeases> {
        self.kernel.outbox.leases()
    }
}

impl Kernel {
    pub(crate) fn effect(&self, handle: &Handle) -> Result<EffectRecord> {
        if handle.kind != HandleKind::Effect {
            return Err(Error::invalid(format!("{handle} does not name an effect"))
                .with_accepted(["z://effect/<64 hexadecimal digits>"]));
        }
        self.outbox.catch_up(&*self.files, &*self.objects)?;
        let (store, workspace) = self.outbox.open()?;
        store
            .effect(&workspace, &handle.digest)?
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no effect {handle} is known")))
    }

    /// Settles what is pending when a kernel opens; nobody is waited for, and a failure is for the next one.
    pub(crate) fn reconcile_at_opening(&self) {
        let config = &self.outbox.config;
        if !config.reconcile_at_opening || (config.channels.is_empty() && !self.outbox.replicates()) {
            return;
        }
        let reconciled = Dispatcher::new(self).and_then(|mut dispatcher| {
            dispatcher.reconcile(Duration::ZERO, &CancelToken::new())?;
            Ok(dispatcher.report)
        });
        match reconciled {
            Ok(report) if report == Reconciled::default() => {}
            Ok(report) => tracing::info!(?report, "effects were reconciled"),
            Err(error) => tracing::warn!(%error, "effects could not be reconciled"),
        }
    }

    /// Does what a committed cell asked for. What cannot be done now is left to the next reconciliation.
    pub(crate) fn after_commit(&self, cell: &Cell, host: &CancelToken) {
        let channels = lock(&cell.intents).channels();
        if channels.is_empty() && !self.outbox.replicates() {
            return;
        }
        let done = Dispatcher::new(self).and_then(|mut dispatcher| {
            if !channels.is_empty() {
                dispatcher.gate(EffectStep::Durable, None)?;
            }
            dispatcher.apply()?;
            channels
                .iter()
                .try_for_each(|channel| dispatcher.channel(channel, Purpose::Dispatch, WAIT, host))
        });
        if let Err(error) = done {
            tracing::warn!(%error, "effects are left to the next reconciliation");
        }
    }
}
