//! Named leases.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use zero_contracts::{CancelToken, ErrorKind};
use zerostack::outbox::{HostIdentity, LeaseAnswer, LeaseAsk, LeaseRequest, NamedLeases};

use super::uuid;
use crate::outbox_support::Backend;

fn request(name: &str, ttl_ms: u64) -> LeaseRequest {
    LeaseRequest {
        ttl: Duration::from_millis(ttl_ms),
        ..LeaseRequest::new(name)
    }
}

fn leases(backend: &Backend) -> (tempfile::TempDir, NamedLeases, String) {
    let directory = tempfile::tempdir().unwrap();
    let leases = NamedLeases::new(backend.store(directory.path()));
    (directory, leases, format!("resource-{}", uuid()))
}

fn status(leases: &NamedLeases, name: &str) -> zerostack::outbox::LeaseStatus {
    leases
        .list()
        .unwrap()
        .into_iter()
        .find(|lease| lease.name == name)
        .unwrap()
}

pub fn leases_exclude_and_their_epoch_grows(backend: &Backend) {
    let (_directory, leases, name) = leases(backend);
    let token = CancelToken::new();
    let first = leases.acquire(&request(&name, 5000), &token).unwrap();
    let busy = leases.acquire(&request(&name, 5000), &token).err().unwrap();
    assert_eq!((busy.kind, busy.retryable), (ErrorKind::Busy, true));
    assert!(busy.detail.contains(&std::process::id().to_string()), "{busy:?}");
    assert!(leases.acquire(&request(&format!("{name}-2"), 5000), &token).is_ok());
    // Who waits gets it when it is released.
    let epoch = first.epoch();
    let second = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let patient = LeaseRequest {
                wait: Duration::from_secs(10),
                ..request(&name, 5000)
            };
            leases.acquire(&patient, &token).unwrap()
        });
        std::thread::sleep(Duration::from_millis(60));
        first.release().unwrap();
        waiting.join().unwrap()
    });
    assert!(second.epoch() > epoch);
    let seen = status(&leases, &name);
    assert_eq!((seen.acquired, seen.contended, seen.epoch), (2, 2, second.epoch()));
    assert!(seen.holder.is_some() && !seen.lapsed);
    second.release().unwrap();
    let third = leases.acquire(&request(&name, 5000), &token).unwrap();
    assert!(third.epoch() > epoch);
    let cancelled = CancelToken::new();
    cancelled.cancel();
    assert_eq!(
        leases.acquire(&request(&name, 5000), &cancelled).err().unwrap().kind,
        ErrorKind::Cancelled
    );
    for bad in ["", "a\0b", &"x".repeat(600)] {
        assert_eq!(
            leases.acquire(&request(bad, 5000), &token).err().unwrap().kind,
            ErrorKind::InvalidInput
        );
    }
}

pub fn a_lapsed_lease_is_never_revived(backend: &Backend) {
    let (_directory, leases, name) = leases(backend);
    let parent = CancelToken::new();
    let mut late = leases.acquire(&request(&name, 40), &parent).unwrap();
    let token = late.token().clone();
    std::thread::sleep(Duration::from_millis(60));
    assert!(status(&leases, &name).lapsed);
    // Nobody else wants it, and still it is lost.
    assert_eq!(late.keep().unwrap_err().kind, ErrorKind::Conflict);
    assert!(token.is_cancelled() && !parent.is_cancelled());
    assert_eq!(late.renew().unwrap_err().kind, ErrorKind::Conflict);
    let next = leases.acquire(&request(&name, 5000), &parent).unwrap();
    assert_eq!(late.release().unwrap_err().kind, ErrorKind::Conflict);
    let seen = status(&leases, &name);
    assert_eq!((seen.epoch, seen.reclaimed_expired, seen.lost), (next.epoch(), 1, 1));
}

pub fn a_lease_is_renewed_by_the_work_that_holds_it(backend: &Backend) {
    let (_directory, leases, name) = leases(backend);
    let token = CancelToken::new();
    let mut lease = leases.acquire(&request(&name, 1500), &token).unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(2000) {
        lease.keep().unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(leases.acquire(&request(&name, 1500), &token).is_err());
    assert!(!lease.token().is_cancelled());
    lease.release().unwrap();
}

pub fn every_failing_path_ends_in_quarantine(backend: &Backend) {
    let token = CancelToken::new();
    let (_directory, leases, base) = leases(backend);
    for path in ["fail", "drop", "expire", "die"] {
        let name = format!("{base}-{path}");
        let ask = LeaseRequest {
            ceiling: 3,
            ..request(&name, if path == "expire" { 20 } else { 5000 })
        };
        let fail = || match path {
            "fail" => leases.acquire(&ask, &token).unwrap().fail().unwrap(),
            "drop" => drop(leases.acquire(&ask, &token).unwrap()),
            "expire" => {
                let mut lease = leases.acquire(&ask, &token).unwrap();
                std::thread::sleep(Duration::from_millis(30));
                assert!(lease.keep().is_err());
            }
            // Acquired by a process that has ended since.
            _ => {
                let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
                let host = HostIdentity {
                    process: zero_supervisor::Identity::of(child.id().cast_signed()).unwrap(),
                    ..HostIdentity::current().unwrap()
                };
                let owner = uuid();
                let granted = leases.store().acquire_lease(&LeaseAsk {
                    name: &name,
                    owner: &owner,
                    host: &host,
                    ttl: Duration::from_secs(600),
                    ceiling: 3,
                    first: true,
                });
                assert!(matches!(granted, Ok(LeaseAnswer::Granted(_))), "{granted:?}");
                assert!(leases.acquire(&ask, &token).is_err(), "it lives");
                child.kill().unwrap();
                child.wait().unwrap();
            }
        };
        // Two failures, then a success: forgotten.
        fail();
        fail();
        let ask_long = LeaseRequest {
            ceiling: 3,
            ..request(&name, 5000)
        };
        leases.acquire(&ask_long, &token).unwrap().release().unwrap();
        assert_eq!(status(&leases, &name).failures, 0, "{path}");
        let before = status(&leases, &name).epoch;
        (0..3).for_each(|_| fail());
        let refused = leases.acquire(&ask, &token).err().unwrap();
        assert_eq!(refused.kind, ErrorKind::Denied, "{path}: {refused:?}");
        let seen = status(&leases, &name);
        assert!(seen.quarantined && seen.epoch > before, "{path}: {seen:?}");
        if path == "die" {
            assert_eq!(seen.reclaimed_dead, 5);
        }
        assert!(leases.lift_quarantine(&name).unwrap());
        assert!(!leases.lift_quarantine(&name).unwrap());
        assert!(leases.acquire(&ask_long, &token).unwrap().epoch() > seen.epoch);
    }
}

pub fn threads_that_contend_for_a_lease_never_share_it(backend: &Backend) {
    let (directory, leases, name) = leases(backend);
    let inside = std::sync::atomic::AtomicUsize::new(0);
    let epochs = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // A connection of its own each, as processes have.
            let leases = NamedLeases::new(backend.store(directory.path()));
            let (inside, epochs, name) = (&inside, &epochs, &name);
            scope.spawn(move || {
                let ask = LeaseRequest {
                    wait: Duration::from_secs(30),
                    ..request(name, 10_000)
                };
                for _ in 0..10 {
                    let lease = leases.acquire(&ask, &CancelToken::new()).unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    epochs.lock().unwrap().push(lease.epoch());
                    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                    lease.release().unwrap();
                }
            });
        }
    });
    let epochs = epochs.into_inner().unwrap();
    assert_eq!(epochs.len(), 40);
    assert!(epochs.windows(2).all(|pair| pair[0] < pair[1]), "{epochs:?}");
    assert_eq!(status(&leases, &name).acquired, 40);
}
