//! What a store of effects promises by itself: commits once, transitions by comparison.

use std::sync::Arc;

use serde_json::json;
use zero_contracts::{CancelToken, CellId, Digest, EffectState, Epoch, SessionName};
use zerostack::outbox::{Count, EffectFilter, EffectStep, LeaseRequest, NamedLeases, ReplicatedCommit, Transition};

use super::{ASK, uuid};
use crate::outbox_support::{At, Backend, Outside, all, workspace};

pub fn commits_are_applied_once(backend: &Backend) {
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
    let old = commit(2, "old");
    store.apply(&workspace, &[old]).unwrap();
    let first = store.effects(&workspace, &EffectFilter::default()).unwrap();
    let state = first.first().map(|record| record.state);
    assert_eq!(state, Some(EffectState::Dispatched), "committed before the two met");
    let workspace = uuid();
    store.apply(&workspace, &[]).unwrap();
    assert_eq!(store.applied(&workspace).unwrap(), Some(0), "they have met");
    let commits = [commit(3, "a"), commit(5, "b"), commit(9, "c")];
    store.apply(&workspace, &commits[..2]).unwrap();
    store.apply(&workspace, &commits).unwrap();
    // An older one again, and one whose key is taken: what is there stays.
    store.apply(&workspace, &commits[..1]).unwrap();
    store.apply(&workspace, &[commit(12, "a")]).unwrap();
    assert_eq!(store.applied(&workspace).unwrap(), Some(12));
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
    assert_eq!(store.applied(&uuid()).unwrap(), None, "another workspace");
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

pub fn transitions_are_compare_and_set(backend: &Backend) {
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
