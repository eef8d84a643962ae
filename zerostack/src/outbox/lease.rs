//! Named leases: exclusive use of any resource that a fleet shares, fenced by an epoch that only grows.
//!
//! * A holder renews at half the time to live, by [`NamedLease::keep`], called from the work itself: work that hangs loses
//!   its lease.
//! * A lapsed lease is never revived; a lost one cancels the work's token.
//! * Anybody may take a lease that lapsed, or whose holder is a process of the same machine that has ended.
//! * Each holder that dies, lets it lapse, fails or drops its lease unreleased counts; at the ceiling the resource is
//!   quarantined until a person lifts it. A release forgets the count.
//!
//! A lease excludes only as far as clocks and schedulers do: whoever changes something under it must have the epoch
//! checked by what is changed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use zero_contracts::{CancelToken, Epoch, Error, ErrorKind, Result};

use super::host::HostIdentity;
use super::store::{FleetStore, HeldLease, LeaseAnswer, LeaseAsk, LeaseEnd, LeaseStatus};

/// Most bytes of a resource's name.
const NAME_BYTES: usize = 512;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// The resource: any text of 1 to 512 bytes.
    pub name: String,
    /// Time to live: how long the lease stays with a holder that is not heard of; at least 10 ms. 30 s by default.
    pub ttl: Duration,
    /// How long to wait for another holder; not at all by default.
    pub wait: Duration,
    /// Holders in a row that may fail before the resource is quarantined; 0 for any number. 5 by default.
    pub ceiling: u32,
}

impl LeaseRequest {
    /// Asks for a resource with the defaults.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ttl: Duration::from_secs(30),
            wait: Duration::ZERO,
            ceiling: 5,
        }
    }
}

/// The leases of one store.
#[derive(Clone)]
pub struct NamedLeases(pub(super) Arc<dyn FleetStore>);

impl NamedLeases {
    /// The leases of a store.
    pub fn new(store: Arc<dyn FleetStore>) -> Self {
        Self(store)
    }

    /// The store they lie in.
    pub fn store(&self) -> Arc<dyn FleetStore> {
        Arc::clone(&self.0)
    }

    /// Acquires a lease. Its token is a child of `token`.
    ///
    /// # Errors
    /// `busy` with the holder when the wait is over; `denied` for a quarantined resource; `invalid_input`; `cancelled` and
    /// `deadline` from the token; those of the store.
    pub fn acquire(&self, request: &LeaseRequest, token: &CancelToken) -> Result<NamedLease> {
        if !(1..=NAME_BYTES).contains(&request.name.len()) || request.name.contains('\0') {
            return Err(
                Error::invalid(format!("a lease's name has 1 to {NAME_BYTES} bytes and no NUL")).with_path("name"),
            );
        }
        if request.ttl < Duration::from_millis(10) {
            return Err(Error::invalid("a lease lives for 10 ms at least").with_path("ttl"));
        }
        let host = HostIdentity::current().map_err(|e| Error::from_io(&e, "reading /proc/self"))?;
        let owner = uuid::Uuid::now_v7().simple().to_string();
        let begun = Instant::now();
        let mut pause = Duration::from_millis(1);
        let mut first = true;
        loop {
            token.check()?;
            let asked = Instant::now();
            let answer = self.0.acquire_lease(&LeaseAsk {
                name: &request.name,
                owner: &owner,
                host: &host,
                ttl: request.ttl,
                ceiling: request.ceiling,
                first,
            })?;
            first = false;
            match answer {
                LeaseAnswer::Granted(epoch) => {
                    return Ok(NamedLease {
                        store: Arc::clone(&self.0),
                        held: HeldLease {
                            name: request.name.clone(),
                            owner,
                            epoch,
                        },
                        ttl: request.ttl,
                        ceiling: request.ceiling,
                        renewed: asked,
                        token: token.child(None),
                        over: false,
                    });
                }
                LeaseAnswer::Quarantined => {
                    return Err(Error::new(
                        ErrorKind::Denied,
                        format!(
                            "`{}` is quarantined: its holders failed too often in a row; find out why, then lift it",
                            request.name
                        ),
                    )
                    .with_path(&request.name));
                }
                LeaseAnswer::Busy(holder) if begun.elapsed() >= request.wait => {
                    let who = holder.map_or_else(
                        || "somebody".to_owned(),
                        |holder| format!("process {} of {}", holder.process.pid, holder.place),
                    );
                    return Err(
                        Error::new(ErrorKind::Busy, format!("{who} holds `{}`", request.name)).with_path(&request.name)
                    );
                }
                LeaseAnswer::Busy(_) => {
                    std::thread::sleep(pause.min(request.wait.saturating_sub(begun.elapsed())));
                    pause = (pause * 2).min(Duration::from_millis(20));
                }
            }
        }
    }

    /// Lists every lease with the counters of its resource.
    ///
    /// # Errors
    /// Those of the store.
    pub fn list(&self) -> Result<Vec<LeaseStatus>> {
        self.0.leases()
    }

    /// Lifts the quarantine of a resource; tells whether there was one.
    ///
    /// # Errors
    /// Those of the store.
    pub fn lift_quarantine(&self, name: &str) -> Result<bool> {
        self.0.lift_quarantine(name)
    }
}

/// A lease that is held. Dropping it unreleased counts as a failure of the work.
pub struct NamedLease {
    store: Arc<dyn FleetStore>,
    held: HeldLease,
    ttl: Duration,
    ceiling: u32,
    /// When the last successful request was sent: the lease lives at least so long after.
    renewed: Instant,
    token: CancelToken,
    over: bool,
}

impl NamedLease {
    /// The fencing token: greater than that of every earlier holder.
    pub fn epoch(&self) -> Epoch {
        self.held.epoch
    }

    /// Ends when the lease is lost: the work polls it.
    pub fn token(&self) -> &CancelToken {
        &self.token
    }

    /// Time to live.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// The lease as the store knows it: the fence of a [`Transition`](super::store::Transition).
    pub fn held(&self) -> &HeldLease {
        &self.held
    }

    /// Renews the lease if half its time is over; costs nothing before. To be called by the work, often.
    ///
    /// # Errors
    /// `conflict` once it is lost, from then on always; a store that cannot be reached is an error only when the time to
    /// live is over.
    pub fn keep(&mut self) -> Result<()> {
        if !self.over && self.renewed.elapsed() < self.ttl / 2 {
            return Ok(());
        }
        self.renew()
    }

    /// Renews the lease now.
    ///
    /// # Errors
    /// As for [`keep`](Self::keep).
    pub fn renew(&mut self) -> Result<()> {
        if self.over {
            return Err(self.lost());
        }
        let asked = Instant::now();
        match self.store.renew_lease(&self.held, self.ttl) {
            Ok(true) => {
                self.renewed = asked;
                Ok(())
            }
            Ok(false) => Err(self.lost()),
            Err(_) if self.renewed.elapsed() < self.ttl => Ok(()),
            Err(error) => {
                self.lost();
                Err(error)
            }
        }
    }

    /// Gives the lease back: the work is done.
    ///
    /// # Errors
    /// `conflict` if it was lost before; those of the store, and then the lease lapses.
    pub fn release(mut self) -> Result<()> {
        self.end(LeaseEnd::Released)
    }

    /// Gives the lease back: the work failed, which is counted.
    ///
    /// # Errors
    /// As for [`release`](Self::release).
    pub fn fail(mut self) -> Result<()> {
        let ceiling = self.ceiling;
        self.end(LeaseEnd::Failed { ceiling })
    }

    fn end(&mut self, end: LeaseEnd) -> Result<()> {
        if self.over {
            return Err(self.lost());
        }
        self.over = true;
        match self.store.end_lease(&self.held, end)? {
            true => Ok(()),
            false => Err(self.lost()),
        }
    }

    fn lost(&mut self) -> Error {
        self.over = true;
        self.token.cancel();
        Error::new(
            ErrorKind::Conflict,
            format!("the lease `{}` (epoch {}) is lost", self.held.name, self.held.epoch),
        )
        .with_path(&self.held.name)
    }

    /// Leaves the lease as a process that dies would.
    pub(super) fn desert(mut self) {
        self.over = true;
    }
}

impl Drop for NamedLease {
    fn drop(&mut self) {
        if !self.over {
            let ceiling = self.ceiling;
            // A store that cannot be reached finds the lease lapsed.
            let _ = self.end(LeaseEnd::Failed { ceiling });
        }
    }
}
