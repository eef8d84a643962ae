//! A token that carries cancellation and a deadline into every engine call.
//!
//! Engines poll [`CancelToken::check`] at least every few milliseconds of work. A child token ends with its parent or on
//! its own, never the other way round. The token never wakes anybody: whoever sleeps polls or is woken by the hub.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::{Error, ErrorKind};

/// Cancellation and deadline of one piece of work. Cheap to clone; all clones are one token.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cancelled: AtomicBool,
    deadline: Option<Instant>,
    /// A token has no parent, one, or two.
    parents: [Option<CancelToken>; 2],
}

impl CancelToken {
    /// Makes a token without a deadline.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a token whose deadline is `timeout` from now.
    pub fn with_timeout(timeout: Duration) -> Self {
        Self(Arc::new(Inner {
            deadline: Instant::now().checked_add(timeout),
            ..Inner::default()
        }))
    }

    /// Makes a token that ends with this one, when it is cancelled itself, or at `deadline`.
    #[must_use]
    pub fn child(&self, deadline: Option<Instant>) -> Self {
        Self(Arc::new(Inner {
            deadline,
            parents: [Some(self.clone()), None],
            ..Inner::default()
        }))
    }

    /// Makes a token that ends when either of two ends. Cancelling it cancels neither of them.
    #[must_use]
    pub fn either(&self, other: &Self) -> Self {
        Self(Arc::new(Inner {
            parents: [Some(self.clone()), Some(other.clone())],
            ..Inner::default()
        }))
    }

    /// Cancels this token and its children, not its parent.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
    }

    /// Tells whether this token or a parent was cancelled; a passed deadline does not count.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire) || self.0.parents.iter().flatten().any(Self::is_cancelled)
    }

    /// Returns the earliest deadline of this token and its parents.
    pub fn deadline(&self) -> Option<Instant> {
        let above = self.0.parents.iter().flatten().filter_map(Self::deadline);
        above.chain(self.0.deadline).min()
    }

    /// Returns the time left before the deadline; none without a deadline.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline()
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Goes on, or stops the work.
    ///
    /// # Errors
    /// `cancelled` after a cancellation, else `deadline` when the deadline has passed.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "the work was cancelled"));
        }
        match self.deadline() {
            Some(deadline) if Instant::now() >= deadline => {
                Err(Error::new(ErrorKind::Deadline, "the deadline has passed"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_ends_with_its_parent_and_not_the_other_way_round() {
        let parent = CancelToken::new();
        let (one, two) = (parent.child(None), parent.child(None));
        one.cancel();
        assert!(one.is_cancelled() && !parent.is_cancelled() && !two.is_cancelled());
        parent.cancel();
        assert_eq!(two.check().unwrap_err().kind, ErrorKind::Cancelled);
    }

    #[test]
    fn a_token_of_two_ends_with_either() {
        for which in [0, 1] {
            let parents = [CancelToken::new(), CancelToken::with_timeout(Duration::from_secs(60))];
            let both = parents[0].either(&parents[1]);
            assert!(both.check().is_ok() && both.deadline().is_some());
            parents[which].cancel();
            assert!(both.is_cancelled() && !parents[1 - which].is_cancelled());
        }
    }

    #[test]
    fn the_earliest_deadline_holds() {
        let parent = CancelToken::with_timeout(Duration::from_secs(60));
        let late = parent.child(Instant::now().checked_add(Duration::from_secs(600)));
        assert!(late.remaining().unwrap() <= Duration::from_secs(60));
        let past = parent.child(Some(Instant::now()));
        assert_eq!(past.check().unwrap_err().kind, ErrorKind::Deadline);
        assert!(!past.is_cancelled());
    }
}
