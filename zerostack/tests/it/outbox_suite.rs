//! One suite for every store: each case gets a backend that nobody else uses.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use zero_contracts::response::{Disposition, Outcome};
use zero_contracts::{CancelToken, CellId, Digest, EffectState, Epoch, ErrorKind, SessionName};
use zerostack::outbox::{
    Count, EffectFilter, EffectStep, HostIdentity, LeaseAnswer, LeaseAsk, LeaseRequest, NamedLeases, ReplicatedCommit,
    Transition,
};

use crate::outbox_support::{At, Backend, Manner, Outside, again, all, states, told, until_over, workspace};

/// A case of the suite.
pub type Case = fn(&Backend);

/// Every case by name.
pub const CASES: &[(&str, Case)] = &[
    (
        "an_effect_is_sent_after_its_cell_and_told",
        an_effect_is_sent_after_its_cell_and_told,
    ),
    ("a_failed_cell_dispatches_nothing", a_failed_cell_dispatches_nothing),
    (
        "keys_stand_for_one_payload_in_their_scope",
        keys_stand_for_one_payload_in_their_scope,
    ),
    (
        "a_crash_at_every_step_with_an_honest_probe",
        a_crash_at_every_step_with_an_honest_probe,
    ),
    (
        "a_crash_at_every_step_without_a_probe",
        a_crash_at_every_step_without_a_probe,
    ),
    (
        "a_fence_lost_between_claim_and_send",
        a_fence_lost_between_claim_and_send,
    ),
    (
        "what_a_channel_cannot_do_is_quarantined",
        what_a_channel_cannot_do_is_quarantined,
    ),
    ("what_nobody_can_tell_is_abandoned", what_nobody_can_tell_is_abandoned),
    (
        "hosts_that_die_of_an_effect_do_not_die_for_ever",
        hosts_that_die_of_an_effect_do_not_die_for_ever,
    ),
    ("a_slow_channel_keeps_its_lease", a_slow_channel_keeps_its_lease),
    (
        "many_dispatchers_send_each_effect_once",
        many_dispatchers_send_each_effect_once,
    ),
    ("commits_are_applied_once", commits_are_applied_once),
    ("transitions_are_compare_and_set", transitions_are_compare_and_set),
    (
        "leases_exclude_and_their_epoch_grows",
        leases_exclude_and_their_epoch_grows,
    ),
    ("a_lapsed_lease_is_never_revived", a_lapsed_lease_is_never_revived),
    (
        "a_lease_is_renewed_by_the_work_that_holds_it",
        a_lease_is_renewed_by_the_work_that_holds_it,
    ),
    (
        "every_failing_path_ends_in_quarantine",
        every_failing_path_ends_in_quarantine,
    ),
    (
        "threads_that_contend_for_a_lease_never_share_it",
        threads_that_contend_for_a_lease_never_share_it,
    ),
];

/// Time to live of a lease that is to lapse.
const SHORT: Duration = Duration::from_millis(60);

const ASK: &str = "return z.apply({effect: 'mail', key: 'order-1', payload: {to: 'a', n: 1}})";

fn an_effect_is_sent_after_its_cell_and_told(backend: &Backend) {
    let outside = Outside::honest();
    let ws = workspace(backend, &outside, |_| {});
    let response = ws.run(
        "const asked = await z.apply({effect: 'mail', key: 'order-1', payload: {n: 1}});
         await z.edit('a', {find: '1', replacement: '2'});
         const staged = await z.read(asked.handle);
         return {asked, state: staged.state, payload: staged.payload}",
    );
    assert_eq!(response.error, None);
    assert_eq!(response.effects.disposition, Disposition::Committed);
    let value = response.value.unwrap().0;
    assert_eq!(
        (&value["asked"]["status"], &value["state"]),
        (&json!("staged"), &json!("staged"))
    );
    assert_eq!(value["payload"], json!({"n": 1}));
    assert_eq!(outside.times().into_values().collect::<Vec<_>>(), [1]);

    let handle = value["asked"]["handle"].as_str().unwrap();
    let record = ws.value(&format!("return z.read('{handle}')"));
    assert_eq!(
        (&record["kind"], &record["state"]),
        (&json!("effect"), &json!("committed"))
    );
    assert_eq!(record["evidence"], json!({"done": "order-1", "attempt": 1}));
    // How it ended is an event of its own, in the chain after the cell's.
    let event = ws.value(&format!("return z.read('{}')", record["event"].as_str().unwrap()));
    assert_eq!(
        (&event["effects"][0]["state"], &event["outcome"]),
        (&json!("committed"), &json!("Completed"))
    );
    let cell = ws.value(&format!(
        "return z.read('z://event/{}')",
        event["previous"].as_str().unwrap()
    ));
    assert_eq!(
        (&cell["effects"][0]["state"], &cell["effects"][0]["key"]),
        (&json!("prepared"), &json!("order-1"))
    );
    assert_eq!(told(&ws.kernel), 1);

    // Without any change of files, too.
    let alone = ws.run("return (await z.apply({effect: 'mail', key: 'order-2', payload: null})).status");
    assert_eq!((alone.outcome, alone.effects.receipts), (Outcome::Completed, 0));
    assert_eq!(outside.times().len(), 2);
    let unknown = ws.error(&format!("return z.read('z://effect/{}')", Digest::of(b"no").to_hex()));
    assert_eq!(unknown.kind, ErrorKind::NotFound);
}

fn a_failed_cell_dispatches_nothing(backend: &Backend) {
    let outside = Outside::honest();
    let ws = workspace(backend, &outside, |_| {});
    let apply = "await z.apply({effect: 'mail', key: 'k', payload: 1})";
    ws.error(&format!("{apply}; throw new Error('no')"));
    ws.error(&format!(
        "{apply}; await z.edit('a', {{find: 'absent', replacement: ''}})"
    ));
    ws.error(&format!("{apply}; return new Map([[1, () => 1]]).get(1)"));
    let token = CancelToken::new();
    let options = zerostack::CellOptions {
        cancel: Some(token.clone()),
        ..zerostack::CellOptions::default()
    };
    let cancelled = std::thread::scope(|scope| {
        let cell = scope.spawn(|| {
            ws.kernel
                .execute_cell_with(&format!("{apply}; await new Promise(() => {{}})"), options)
        });
        std::thread::sleep(Duration::from_millis(150));
        token.cancel();
        cell.join().unwrap()
    });
    assert_ne!(cancelled.outcome, Outcome::Completed);
    ws.kernel.reconcile(&CancelToken::new()).unwrap();
    assert_eq!((outside.calls.load(Ordering::SeqCst), all(&ws.kernel).len()), (0, 0));
    // The key is free all the same.
    assert_eq!(ws.value(&format!("return ({apply}).status")), "staged");

    for (request, kind, path) in [
        (
            "{effect: 'fax', key: 'k', payload: 1}",
            ErrorKind::Unsupported,
            "effect",
        ),
        ("{effect: 'mail', key: '', payload: 1}", ErrorKind::InvalidInput, "key"),
        (
            "{effect: 'mail', key: 'a\\nb', payload: 1}",
            ErrorKind::InvalidInput,
            "key",
        ),
        (
            "{effect: 'mail', key: 'x', payload: {bad: 1}}",
            ErrorKind::InvalidInput,
            "payload.bad",
        ),
        (
            "{effect: 'mail', key: 'x', payload: 'y'.repeat(300000)}",
            ErrorKind::InvalidInput,
            "payload",
        ),
        (
            "{effect: 'mail', key: 'x', payload: 1, scope: 'world'}",
            ErrorKind::InvalidInput,
            "scope",
        ),
        (
            "{effect: 'mail', key: 'x', payload: 1, when: 2}",
            ErrorKind::InvalidInput,
            "when",
        ),
    ] {
        let error = ws.error(&format!("await z.apply({request})"));
        assert_eq!(
            (error.kind, error.path.as_deref()),
            (kind, Some(path)),
            "{request}: {error:?}"
        );
    }
    let error = ws.error("await z.apply({effect: 'mail', key: 'x', payload: 1}, {verify: {parse: true}})");
    assert_eq!(error.path.as_deref(), Some("options.verify"));
}

fn keys_stand_for_one_payload_in_their_scope(backend: &Backend) {
    let outside = Outside::honest();
    let ws = workspace(backend, &outside, |_| {});
    let first = ws.value(ASK);
    let second = ws.value(ASK);
    assert_eq!(
        (&second["status"], &second["handle"]),
        (&json!("duplicate"), &first["handle"])
    );
    assert_eq!(second["evidence"], json!({"done": "order-1", "attempt": 1}));
    // The order of fields is no difference; another value is.
    let reordered = "return (await z.apply({effect: 'mail', key: 'order-1', payload: {n: 1, to: 'a'}})).status";
    assert_eq!(ws.value(reordered), "duplicate");
    let other = ws.error("await z.apply({effect: 'mail', key: 'order-1', payload: {n: 2, to: 'a'}})");
    assert_eq!((other.kind, other.path.as_deref()), (ErrorKind::Conflict, Some("key")));
    // A caught conflict leaves the cell committable.
    let caught = "try { await z.apply({effect: 'mail', key: 'order-1', payload: 3}) } catch (e) { return e.kind }";
    assert_eq!(ws.value(caught), "conflict");
    // Within one cell, also at the same time.
    let within = ws.value(
        "const ask = payload => z.apply({effect: 'mail', key: 'k', payload});
         const [a, b] = await Promise.all([ask(1), ask(1)]);
         let kind; try { await ask(2) } catch (e) { kind = e.kind }
         return [[a.status, b.status].sort(), kind]",
    );
    assert_eq!(within, json!([["duplicate", "staged"], "conflict"]));

    let scoped = |scope: &str| {
        format!("return (await z.apply({{effect: 'mail', key: 's', payload: 1, scope: '{scope}'}})).status")
    };
    assert_eq!(ws.value(&scoped("cell")), "staged");
    assert_eq!(ws.value(&scoped("cell")), "staged");
    assert_eq!(ws.value(&scoped("session")), "staged");
    assert_eq!(ws.value(&scoped("session")), "duplicate");
    assert_eq!(ws.value(&scoped("workspace")), "staged");
    let other = {
        let mut config = crate::hub_support::config(ws.root.path(), ws.store.path());
        config.session = SessionName::new("other").unwrap();
        config.effects = backend
            .effects()
            .with("mail", crate::outbox_support::ToOutside(Arc::clone(&outside)));
        zerostack::ZeroKernel::open(config).unwrap()
    };
    let status = |cell: &str| other.execute_cell(cell).value.unwrap().0;
    assert_eq!(status(&scoped("session")), "staged");
    assert_eq!(status(&scoped("workspace")), "duplicate");
    assert!(outside.times().values().all(|times| *times == 1));
}

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

fn a_crash_at_every_step_with_an_honest_probe(backend: &Backend) {
    for (first, second) in pairs() {
        let (state, done) = crash_twice(backend, &Outside::honest(), first, second);
        assert_eq!((state, done), (EffectState::Committed, 1), "{first:?}, {second:?}");
    }
}

fn a_crash_at_every_step_without_a_probe(backend: &Backend) {
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

fn a_fence_lost_between_claim_and_send(backend: &Backend) {
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

fn what_a_channel_cannot_do_is_quarantined(backend: &Backend) {
    let outside = Outside::honest();
    outside.manner(Manner::Refuses);
    let ws = workspace(backend, &outside, |effects| effects.ceiling = 3);
    ws.value(ASK);
    assert_eq!(states(&all(&ws.kernel)), [EffectState::Prepared]);
    ws.kernel.reconcile(&CancelToken::new()).unwrap();
    let report = ws.kernel.reconcile(&CancelToken::new()).unwrap();
    assert_eq!(report.quarantined.len(), 1);
    for _ in 0..3 {
        ws.kernel.reconcile(&CancelToken::new()).unwrap();
    }
    assert_eq!(outside.calls.load(Ordering::SeqCst), 3, "never retried by itself");
    let filter = EffectFilter {
        states: vec![EffectState::Quarantined],
        ..EffectFilter::default()
    };
    let [record] = &*ws.kernel.effects(&filter).unwrap() else {
        panic!("listed")
    };
    assert_eq!((record.attempts, record.detail.as_deref()), (3, Some("not today")));
    let event = ws.kernel.event(&record.event.unwrap().digest).unwrap();
    assert_eq!(
        (event.outcome, event.effects[0].state),
        (Outcome::Failed, EffectState::Quarantined)
    );

    // By hand it is tried once more; then it is done, and a second event says so.
    ws.kernel.retry_effect(&record.handle).unwrap();
    outside.manner(Manner::Does);
    let report = ws.kernel.reconcile(&CancelToken::new()).unwrap();
    assert_eq!(report.committed, [record.handle]);
    assert_eq!(told(&ws.kernel), 2);
    let error = ws.kernel.abandon_effect(&record.handle, "too late").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert_eq!(
        ws.kernel.retry_effect(&record.handle).unwrap_err().kind,
        ErrorKind::Conflict
    );
}

fn what_nobody_can_tell_is_abandoned(backend: &Backend) {
    // (manner, probe knows, done, ends as)
    for (manner, probe, done, end) in [
        (Manner::DoesUnsure, None, 1, EffectState::Abandoned),
        (Manner::RefusesUnsure, None, 0, EffectState::Abandoned),
        (Manner::DoesHangs, Some(false), 1, EffectState::Abandoned),
        (Manner::DoesPanics, None, 1, EffectState::Abandoned),
        (Manner::DoesUnsure, Some(true), 1, EffectState::Committed),
        (Manner::DoesPanics, Some(true), 1, EffectState::Committed),
        (Manner::DoesHangs, Some(true), 1, EffectState::Committed),
    ] {
        let outside = Outside::blind();
        *outside.probe.lock().unwrap() = probe;
        outside.manner(manner);
        let ws = workspace(backend, &outside, |effects| {
            effects.ceiling = 3;
            effects.timeout = Duration::from_millis(50);
        });
        ws.value(ASK);
        let records = until_over(&ws.kernel);
        assert_eq!(states(&records), [end], "{manner:?}, {probe:?}");
        assert_eq!(outside.times().values().sum::<usize>(), done, "{manner:?}, {probe:?}");
        assert_eq!(outside.calls.load(Ordering::SeqCst), 1);
        if end == EffectState::Abandoned {
            assert_eq!(records[0].unknown, 3);
            let duplicate = ws.value(ASK);
            assert_eq!(duplicate["status"], "duplicate", "never sent again");
            assert_eq!(outside.calls.load(Ordering::SeqCst), 1);
        }
    }
    // By hand, before the ceiling.
    let outside = Outside::blind();
    outside.manner(Manner::DoesUnsure);
    let ws = workspace(backend, &outside, |_| {});
    ws.value(ASK);
    let [record] = &*all(&ws.kernel) else {
        panic!("one effect")
    };
    assert_eq!(record.state, EffectState::Dispatched);
    let record = ws.kernel.abandon_effect(&record.handle, "asked the customer").unwrap();
    assert_eq!(
        (record.state, record.detail.as_deref()),
        (EffectState::Abandoned, Some("asked the customer"))
    );
    assert!(record.event.is_some());
}

fn hosts_that_die_of_an_effect_do_not_die_for_ever(backend: &Backend) {
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

fn a_slow_channel_keeps_its_lease(backend: &Backend) {
    let outside = Outside::honest();
    outside.manner(Manner::DoesHangs);
    let ws = workspace(backend, &outside, |effects| {
        effects.timeout = Duration::from_millis(4000);
        effects.lease_ttl = Duration::from_millis(1000);
    });
    let seen = std::thread::scope(|scope| {
        let cell = scope.spawn(|| ws.run(ASK));
        let begun = Instant::now();
        while outside.calls.load(Ordering::SeqCst) == 0 {
            assert!(begun.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(5));
        }
        // Several times to live into the call the lease is still the dispatcher's: another one is turned away.
        std::thread::sleep(Duration::from_millis(1800));
        outside.manner(Manner::Does);
        let kernel = again(&ws, backend, &outside, |_| {});
        let [record] = &*all(&kernel) else { panic!("one effect") };
        let state = record.state;
        assert_eq!(cell.join().unwrap().outcome, Outcome::Completed);
        state
    });
    assert_eq!(seen, EffectState::Dispatched);
    assert_eq!(states(&all(&ws.kernel)), [EffectState::Committed], "by the probe");
    assert_eq!(outside.times().values().sum::<usize>(), 1);
}

fn many_dispatchers_send_each_effect_once(backend: &Backend) {
    let outside = Outside::honest();
    let ws = workspace(backend, &outside, |_| {});
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (ws, outside) = (&ws, &outside);
            scope.spawn(move || {
                let kernel = again(ws, backend, outside, |effects| {
                    effects.lease_ttl = Duration::from_secs(10)
                });
                for n in 0..5 {
                    // Half of the keys are everybody's, half a worker's own.
                    let key = if n % 2 == 0 {
                        format!("all-{n}")
                    } else {
                        format!("{worker}-{n}")
                    };
                    let response = kernel.execute_cell(&format!(
                        "return (await z.apply({{effect: 'mail', key: '{key}', payload: '{key}'}})).status"
                    ));
                    assert_eq!(response.error, None);
                    kernel.reconcile(&CancelToken::new()).unwrap();
                }
            });
        }
    });
    let records = until_over(&ws.kernel);
    assert_eq!(records.len(), 3 + 4 * 2);
    assert!(records.iter().all(|record| record.state == EffectState::Committed));
    let times = outside.times();
    assert_eq!(times.len(), records.len());
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    assert_eq!(told(&ws.kernel), records.len());
}

fn commits_are_applied_once(backend: &Backend) {
    let directory = tempfile::tempdir().unwrap();
    let store = backend.store(directory.path());
    let workspace = uuid();
    let commit = |sequence: u64, key: &str| {
        let request = zero_contracts::apply::EffectRequest {
            effect: "mail".into(),
            key: key.into(),
            payload: json!({ "of": sequence }).into(),
            scope: zero_contracts::apply::EffectScope::Workspace,
        };
        let cell = CellId::new(format!("cell-{sequence}")).unwrap();
        let intent = zero_contracts::EffectIntent::new(request, SessionName::default(), cell.clone());
        ReplicatedCommit {
            sequence,
            session: SessionName::default(),
            cell,
            state: None,
            event: Digest::of(&sequence.to_le_bytes()),
            body: Some(format!("{{\"n\":{sequence}}}")),
            intents: vec![(Digest::of(key.as_bytes()), Ok(intent))],
        }
    };
    let commits = [commit(3, "a"), commit(5, "b"), commit(9, "c")];
    store.apply(&workspace, &commits[..2]).unwrap();
    store.apply(&workspace, &commits).unwrap();
    // An older one again, and one whose key is taken: what is there stays.
    store.apply(&workspace, &commits[..1]).unwrap();
    store.apply(&workspace, &[commit(12, "a")]).unwrap();
    assert_eq!(store.applied(&workspace).unwrap(), 12);
    let events = store.events(&workspace, 3, 10).unwrap();
    assert_eq!(
        events.iter().map(|event| event.sequence).collect::<Vec<_>>(),
        [5, 9, 12]
    );
    assert_eq!(events[0].body.as_deref(), Some("{\"n\":5}"));
    let records = store.effects(&workspace, &EffectFilter::default()).unwrap();
    let seen: Vec<_> = records
        .iter()
        .map(|record| {
            (
                record.key.as_str(),
                record.payload.clone().unwrap().0["of"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(seen, [("a", 3), ("b", 5), ("c", 9)]);
    assert_eq!(store.applied(&uuid()).unwrap(), 0, "another workspace");
    // What cannot be read is kept and listed, and stands in nobody's way.
    let mut damaged = commit(13, "d");
    damaged.intents[0].1 = Err("it is gone".into());
    store.apply(&workspace, &[damaged]).unwrap();
    let quarantined = EffectFilter {
        states: vec![EffectState::Quarantined],
        ..EffectFilter::default()
    };
    let listed = store.effects(&workspace, &quarantined).unwrap();
    assert!(
        listed[0].detail.as_deref().unwrap().contains("it is gone"),
        "{listed:?}"
    );
}

fn transitions_are_compare_and_set(backend: &Backend) {
    let outside = Outside::honest();
    let ws = workspace(backend, &outside, |effects| {
        effects.gate = Some(At::die(EffectStep::Applied))
    });
    ws.value(ASK);
    let [record] = &*all(&ws.kernel) else {
        panic!("one effect")
    };
    let store = backend.store(ws.store.path());
    let workspace = std::fs::read_to_string(ws.store.path().join("workspace.id")).unwrap();
    let leases = NamedLeases::new(Arc::clone(&store));
    let name = format!("fence-{workspace}");
    let lease = leases.acquire(&LeaseRequest::new(&name), &CancelToken::new()).unwrap();
    let plain = Transition {
        workspace: &workspace,
        effect: record.handle.digest,
        from: EffectState::Prepared,
        claimed: None,
        fence: None,
        to: EffectState::Claimed,
        claim: Some(lease.epoch()),
        count: Count::Nothing,
        evidence: None,
        detail: None,
    };
    let mut stale = lease.held().clone();
    stale.epoch = Epoch(stale.epoch.0 + 1);
    let refused = [
        Transition {
            from: EffectState::Dispatched,
            ..plain.clone()
        },
        Transition {
            workspace: "elsewhere",
            ..plain.clone()
        },
        Transition {
            claimed: Some(Epoch(77)),
            ..plain.clone()
        },
        Transition {
            fence: Some(&stale),
            ..plain.clone()
        },
    ];
    for transition in &refused {
        assert!(!store.transition(transition).unwrap(), "{transition:?}");
    }
    let held = lease.held().clone();
    let fenced = Transition {
        fence: Some(&held),
        ..plain
    };
    assert!(store.transition(&fenced).unwrap());
    assert!(!store.transition(&fenced).unwrap(), "once");
    let after = Transition {
        from: EffectState::Claimed,
        to: EffectState::Dispatched,
        fence: Some(&held),
        ..fenced
    };
    lease.release().unwrap();
    assert!(!store.transition(&after).unwrap(), "a released lease is no fence");
}

fn uuid() -> String {
    tempfile::Builder::new()
        .rand_bytes(24)
        .tempfile()
        .unwrap()
        .path()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

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

fn leases_exclude_and_their_epoch_grows(backend: &Backend) {
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

fn a_lapsed_lease_is_never_revived(backend: &Backend) {
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

fn a_lease_is_renewed_by_the_work_that_holds_it(backend: &Backend) {
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

fn every_failing_path_ends_in_quarantine(backend: &Backend) {
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

fn threads_that_contend_for_a_lease_never_share_it(backend: &Backend) {
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
