//! Subscriptions to the events that a kernel records.
//!
//! Delivery happens after an event is recorded and can hold nothing up: a full or abandoned queue loses events, never the
//! cell.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use zero_contracts::{Handle, ZeroKernelEvent};

use crate::cell::lock;

/// Events that wait for a slow subscriber; more are lost and counted.
const QUEUE: usize = 1024;

/// An event that was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEvent {
    /// Its handle: `z://event/…`.
    pub handle: Handle,
    /// The event itself.
    pub event: ZeroKernelEvent,
}

/// The events recorded since the subscription, in order. Dropping it ends the subscription.
///
/// At most 1,024 events wait; what comes on top of them is lost to this subscriber and counted by [`lost`](Self::lost).
/// Every event can still be had from the log.
#[derive(Debug)]
pub struct EventStream {
    receiver: Receiver<Arc<RecordedEvent>>,
    lost: Arc<AtomicU64>,
}

impl EventStream {
    /// Waits for the next event; none if there is none in time, or the kernel is gone.
    pub fn next_within(&self, timeout: Duration) -> Option<Arc<RecordedEvent>> {
        self.receiver.recv_timeout(timeout).ok()
    }

    /// Takes the next event if there is one now.
    pub fn try_next(&self) -> Option<Arc<RecordedEvent>> {
        self.receiver.try_recv().ok()
    }

    /// How many events this subscriber was too slow for.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Acquire)
    }
}

/// Blocks for each event; ends when the kernel is gone.
impl Iterator for EventStream {
    type Item = Arc<RecordedEvent>;

    fn next(&mut self) -> Option<Self::Item> {
        self.receiver.recv().ok()
    }
}

/// The subscribers of one kernel.
#[derive(Default)]
pub(crate) struct Subscribers(Mutex<Vec<Subscriber>>);

struct Subscriber {
    sender: SyncSender<Arc<RecordedEvent>>,
    lost: Arc<AtomicU64>,
}

impl Subscribers {
    pub(crate) fn subscribe(&self) -> EventStream {
        let (sender, receiver) = sync_channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        lock(&self.0).push(Subscriber {
            sender,
            lost: Arc::clone(&lost),
        });
        EventStream { receiver, lost }
    }

    /// Tells everybody who listens.
    pub(crate) fn publish(&self, handle: Handle, event: &ZeroKernelEvent) {
        let mut subscribers = lock(&self.0);
        if subscribers.is_empty() {
            return;
        }
        let recorded = Arc::new(RecordedEvent {
            handle,
            event: event.clone(),
        });
        subscribers.retain(|subscriber| match subscriber.sender.try_send(Arc::clone(&recorded)) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                subscriber.lost.fetch_add(1, Ordering::AcqRel);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        });
    }
}
