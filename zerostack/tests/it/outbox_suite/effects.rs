//! What becomes of an effect: its cell, its key, its channel, many dispatchers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use zero_contracts::response::{Disposition, Outcome};
use zero_contracts::{CancelToken, Digest, EffectState, ErrorKind, SessionName};
use zerostack::outbox::EffectFilter;

use super::ASK;
use crate::outbox_support::{Backend, Manner, Outside, again, all, states, told, until_over, workspace};

pub fn an_effect_is_sent_after_its_cell_and_told(backend: &Backend) {
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

pub fn a_failed_cell_dispatches_nothing(backend: &Backend) {
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

pub fn keys_stand_for_one_payload_in_their_scope(backend: &Backend) {
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

pub fn what_a_channel_cannot_do_is_quarantined(backend: &Backend) {
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
    let event = ws.kernel.event(&record.event.unwrap()).unwrap();
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

pub fn what_nobody_can_tell_is_abandoned(backend: &Backend) {
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

pub fn a_slow_channel_keeps_its_lease(backend: &Backend) {
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

pub fn many_dispatchers_send_each_effect_once(backend: &Backend) {
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
