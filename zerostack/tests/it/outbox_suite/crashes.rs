//! Dispatchers that die, or lose their fence, at any step.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use zero_contracts::response::Outcome;
use zero_contracts::{EffectState, Epoch};
use zerostack::outbox::EffectStep;

use super::{ASK, SHORT};
use crate::outbox_support::{At, Backend, Outside, again, all, told, until_over, workspace};

/// Dies at `first`, then at `second` while it is reconciled, then lives. Returns the effect and how often it was done.
fn crash_twice(
    backend: &Backend,
    outside: &Arc<Outside>,
    first: EffectStep,
    second: EffectStep,
) -> (EffectState, usize) {
    let dying = |step| {
        move |effects: &mut zerostack::Effects| {
            effects.gate = Some(At::die(step));
            effects.lease_ttl = SHORT;
        }
    };
    let ws = workspace(backend, outside, dying(first));
    let response = ws.run(ASK);
    assert_eq!(response.outcome, Outcome::Completed, "{:?}", response.error);
    // A dispatcher of the same process is not known to be dead: its lease must lapse.
    let lapse = || std::thread::sleep(SHORT + Duration::from_millis(10));
    lapse();
    drop(again(&ws, backend, outside, dying(second)));
    lapse();
    let kernel = again(&ws, backend, outside, |_| {});
    let records = until_over(&kernel);
    assert_eq!(records.len(), 1);
    assert!(records[0].event.is_some());
    assert_eq!(told(&kernel), 1, "{first:?}, {second:?}");
    (records[0].state, outside.times().values().sum())
}

/// Pairs of steps: all of the first, and of the second those that a reconciliation passes.
fn pairs() -> impl Iterator<Item = (EffectStep, EffectStep)> {
    let all = std::env::var_os("ZEROSTACK_SOAK").is_some();
    let second: &[EffectStep] = if all {
        &EffectStep::ALL
    } else {
        &[EffectStep::Marked, EffectStep::Probed, EffectStep::Recorded]
    };
    EffectStep::ALL
        .into_iter()
        .flat_map(move |first| second.iter().map(move |second| (first, *second)))
}

pub fn a_crash_at_every_step_with_an_honest_probe(backend: &Backend) {
    for (first, second) in pairs() {
        let (state, done) = crash_twice(backend, &Outside::honest(), first, second);
        assert_eq!((state, done), (EffectState::Committed, 1), "{first:?}, {second:?}");
    }
}

pub fn a_crash_at_every_step_without_a_probe(backend: &Backend) {
    for (first, second) in pairs() {
        let (state, done) = crash_twice(backend, &Outside::blind(), first, second);
        assert!(done <= 1, "{first:?}, {second:?}: done {done} times");
        match state {
            EffectState::Committed => assert_eq!(done, 1),
            // Marked, and nobody heard of it again.
            EffectState::Abandoned => {
                assert!(
                    [first, second]
                        .iter()
                        .any(|step| matches!(step, EffectStep::Marked | EffectStep::Answered))
                );
            }
            other => panic!("{first:?}, {second:?}: {other:?}"),
        }
    }
}

pub fn a_fence_lost_between_claim_and_send(backend: &Backend) {
    let outside = Outside::honest();
    let ws = workspace(backend, &outside, |_| {});
    // A dispatcher that is stopped right after its claim, until its lease has lapsed and another has done the work.
    let (backend_too, outside_too) = (backend.clone(), Arc::clone(&outside));
    let (root, store) = (ws.root.path().to_owned(), ws.store.path().to_owned());
    let gate = At::first(EffectStep::Claimed, move || {
        std::thread::sleep(Duration::from_millis(1600));
        let mut config = crate::hub_support::config(&root, &store);
        config.effects = backend_too
            .effects()
            .with("mail", crate::outbox_support::ToOutside(Arc::clone(&outside_too)));
        let later = zerostack::ZeroKernel::open(config).unwrap();
        let [record] = &*all(&later) else { panic!("one effect") };
        assert_eq!((record.state, record.attempts), (EffectState::Committed, 1));
        Ok(())
    });
    let stopped = again(&ws, backend, &outside, |effects| {
        effects.gate = Some(gate);
        effects.lease_ttl = Duration::from_millis(1500);
    });
    assert_eq!(stopped.execute_cell(ASK).outcome, Outcome::Completed);
    let [record] = &*all(&ws.kernel) else {
        panic!("one effect")
    };
    assert_eq!((record.state, record.attempts), (EffectState::Committed, 1));
    let done = outside.done.lock().unwrap().clone();
    assert_eq!(done.len(), 1);
    assert_eq!(done[0].1, record.epoch, "the later owner sent it");
    assert!(record.epoch >= Epoch(2));
    let leases = ws.kernel.leases().unwrap().list().unwrap();
    let workspace = std::fs::read_to_string(ws.store.path().join("workspace.id")).unwrap();
    let lease = leases.iter().find(|lease| lease.name.contains(&workspace)).unwrap();
    assert!(lease.reclaimed_expired >= 1 && lease.lost >= 1, "{lease:?}");
}

pub fn hosts_that_die_of_an_effect_do_not_die_for_ever(backend: &Backend) {
    let outside = Outside::honest();
    // Long enough to come to the mark, on a slow machine too.
    let ttl = Duration::from_millis(300);
    let dying = |effects: &mut zerostack::Effects| {
        effects.ceiling = 3;
        effects.lease_ttl = ttl;
        effects.gate = Some(At::die(EffectStep::Marked));
    };
    let ws = workspace(backend, &outside, dying);
    ws.value(ASK);
    let begun = Instant::now();
    while !all(&ws.kernel)[0].state.is_over() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(ttl + Duration::from_millis(10));
        drop(again(&ws, backend, &outside, dying));
    }
    let [record] = &*all(&ws.kernel) else {
        panic!("one effect")
    };
    assert_eq!((record.state, record.attempts), (EffectState::Quarantined, 3));
    assert_eq!(outside.calls.load(Ordering::SeqCst), 0);
}
