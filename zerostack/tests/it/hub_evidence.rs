//! Evidence: digests, chains, signatures, receipts, and what pruning leaves of them.

use std::path::Path;

use serde_json::{Value, json};
use zero_contracts::{CancelToken, ErrorKind, Handle, SessionName, UndoOptions};
use zerostack::evidence::{
    Receipt, ReceiptSchema, SigningKey, Subject, Verdict, identity, integrity, sorted_json_digest, verify,
};
use zerostack::{GcOptions, ZeroKernel};

use crate::hub_support::{Workspace, config};

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn signed() -> Workspace {
    Workspace::with(&[("a", "1\n")], |config| config.signing_key = Some(key()))
}

fn text<T: serde::Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap()
}

/// Every single change of a value: a member removed, a string or number altered, an element dropped.
fn mutations(value: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let mut without = members.clone();
                without.remove(name);
                found.push(Value::Object(without));
                for mutated in mutations(member) {
                    let mut with = members.clone();
                    with.insert(name.clone(), mutated);
                    found.push(Value::Object(with));
                }
            }
        }
        Value::Array(elements) => {
            for (n, element) in elements.iter().enumerate() {
                let mut without = elements.clone();
                without.remove(n);
                found.push(Value::Array(without));
                for mutated in mutations(element) {
                    let mut with = elements.clone();
                    with[n] = mutated;
                    found.push(Value::Array(with));
                }
            }
        }
        Value::String(text) => found.push(json!(format!("{text}x"))),
        Value::Number(_) => found.push(json!(123_456.5)),
        Value::Bool(flag) => found.push(json!(!flag)),
        Value::Null => found.push(json!(0)),
    }
    found
}

#[test]
fn equal_attempts_have_equal_identities_and_different_integrities() {
    let events: Vec<_> = (0..2)
        .map(|_| {
            let ws = Workspace::new(&[("a", "1\n")]);
            ws.run("return 0");
            let response = ws.run("console.log('x'); await z.edit('a', {find: '1', replacement: '2'}); return (await z.run('echo hi')).stdout");
            ws.kernel.event(&response.event.unwrap()).unwrap()
        })
        .collect();
    assert_eq!(identity(&events[0]).unwrap(), identity(&events[1]).unwrap());
    assert_ne!(integrity(&events[0]).unwrap(), integrity(&events[1]).unwrap());
    let other = Workspace::new(&[("a", "1\n")]);
    let response = other.run(
        "console.log('x'); await z.edit('a', {find: '1', replacement: '3'}); return (await z.run('echo hi')).stdout",
    );
    let other = other.kernel.event(&response.event.unwrap()).unwrap();
    assert_ne!(identity(&events[0]).unwrap(), identity(&other).unwrap());
}

#[test]
fn an_exported_event_is_checked_with_nothing_but_the_file() {
    let ws = signed();
    ws.run("return 1");
    let event = ws
        .run("await z.edit('a', {find: '1', replacement: '2'}); return [1, {a: 0.1}]")
        .event
        .unwrap();
    let exported = ws.kernel.export_event(&event).unwrap();
    assert_eq!(exported.integrity, event.digest);
    let file = text(&exported);
    let verification = verify(&file, None);
    assert!(
        verification.valid && verification.scope == "signed",
        "{verification:#?}"
    );
    assert_eq!(verification.verdict("chain"), Some(Verdict::NotChecked));
    assert!(verify(&file, Some(&key().public())).valid);
    assert!(!verify(&file, Some(&SigningKey::from_bytes(&[8; 32]).public())).valid);

    // Whatever single thing is changed, some check sees it.
    let value: Value = serde_json::from_slice(&file).unwrap();
    let mutated = mutations(&value);
    assert!(mutated.len() > 50);
    for mutated in mutated {
        let verification = verify(&text(&mutated), None);
        assert!(!verification.valid, "{mutated:#}");
    }
}

#[test]
fn an_unsigned_event_says_integrity_only_and_what_is_unknown_is_invalid() {
    let ws = Workspace::new(&[]);
    let event = ws.run("return 1").event.unwrap();
    let file = text(&ws.kernel.export_event(&event).unwrap());
    let verification = verify(&file, None);
    assert_eq!((verification.valid, verification.scope), (true, "integrity only"));
    assert_eq!(verification.verdict("signature"), Some(Verdict::NotChecked));
    assert_eq!(
        verify(&file, Some(&key().public())).verdict("signature"),
        Some(Verdict::Invalid)
    );
    for unknown in [
        &b""[..],
        b"{",
        b"[]",
        b"7",
        b"{}",
        br#"{"schema": "zerostack.exported-event.v2"}"#,
        br#"{"schema": "zerostack.exported-event.v1"}"#,
        br#"{"schema": 7}"#,
    ] {
        assert_eq!(
            verify(unknown, None).verdict("schema"),
            Some(Verdict::Invalid),
            "{unknown:?}"
        );
    }
    // An event of a later version is not taken for one of this.
    let mut later: Value = serde_json::from_slice(&file).unwrap();
    later["event"]["schema"] = json!("zerostack.event.v2");
    assert_eq!(verify(&text(&later), None).verdict("schema"), Some(Verdict::Invalid));
}

#[test]
fn a_chain_holds_from_end_to_end_and_shows_every_break() {
    let ws = signed();
    for cell in [
        "return 1",
        "await z.edit('a', {find: '1', replacement: '2'})",
        "throw new Error('x')",
        "return (",
    ] {
        ws.run(cell);
    }
    ws.kernel.session().set("k", json!(1), None).unwrap();
    let chain = ws.kernel.export_chain().unwrap();
    assert_eq!(chain.events.len(), 5);
    let verification = verify(&text(&chain), Some(&key().public()));
    assert!(
        verification.valid && verification.verdict("chain") == Some(Verdict::Valid),
        "{verification:#?}"
    );
    assert!(
        ws.kernel
            .verify_chain(&SessionName::default(), Some(&key().public()))
            .unwrap()
            .valid
    );

    let broken = |change: &dyn Fn(&mut zerostack::evidence::ExportedChain)| {
        let mut chain = chain.clone();
        change(&mut chain);
        let verification = verify(&text(&chain), None);
        assert_eq!(
            verification.verdict("chain"),
            Some(Verdict::Invalid),
            "{verification:#?}"
        );
    };
    broken(&|chain| drop(chain.events.remove(2)));
    broken(&|chain| chain.events.swap(1, 2));
    broken(&|chain| chain.session = SessionName::new("other").unwrap());
    broken(&|chain| {
        let twice = chain.events[3].clone();
        chain.events.insert(3, twice);
    });
    // An end that was cut off shows only where the session itself is at hand.
    let mut cut = chain.clone();
    cut.events.pop();
    assert!(verify(&text(&cut), None).valid);
}

#[test]
fn a_store_whose_event_was_changed_or_lost_says_so() {
    let ws = Workspace::new(&[]);
    let events: Vec<_> = (0..3).map(|n| ws.run(&format!("return {n}")).event.unwrap()).collect();
    let session = SessionName::default();
    assert!(ws.kernel.verify_chain(&session, None).unwrap().valid);
    let hex = events[1].digest.to_hex();
    let object = ws.store.path().join("objects").join(&hex[..2]).join(&hex[2..]);
    std::fs::remove_file(object).unwrap();
    let verification = ws.kernel.verify_chain(&session, None).unwrap();
    assert!(
        !verification.valid && verification.checks[0].detail.contains(&hex),
        "{verification:#?}"
    );
    // The others can be read all the same.
    assert!(ws.kernel.export_event(&events[0]).is_ok() && ws.kernel.export_event(&events[2]).is_ok());
}

#[test]
fn a_pruned_chain_stays_verifiable_and_what_only_the_past_held_is_gone() {
    let root = tempfile::tempdir().unwrap();
    let store = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("a"), "0\n").unwrap();
    let files = std::sync::Arc::new(
        fszero::FsZero::open(fszero::FsConfig {
            young: std::time::Duration::ZERO,
            ..fszero::FsConfig::new(root.path(), store.path()).durability(zero_contracts::files::Durability::Process)
        })
        .unwrap(),
    );
    let mut config = config(root.path(), store.path());
    config.engines.files = Some(files);
    let kernel = ZeroKernel::open(config).unwrap();
    let mut events = Vec::new();
    for n in 0..12 {
        let cell = format!(
            "await z.edit('a', {{content: '{}\\n'}}, {{expect: 'any'}}); await z.state.set('n', {n}); return 'value {n} ' + 'x'.repeat(50)",
            n + 1
        );
        events.push(kernel.execute_cell(&cell).event.unwrap());
    }
    let fork = kernel.fork_session(SessionName::new("fork").unwrap(), false).unwrap();
    let undone = kernel
        .undo(&events[11], &UndoOptions::default())
        .unwrap()
        .event
        .unwrap();
    let value_of = |event: &Handle| kernel.event(event).unwrap().value.unwrap();
    let (old, kept) = (value_of(&events[0]), value_of(&events[10]));

    // Nothing goes without being asked for.
    let report = kernel.gc(&GcOptions::default(), &CancelToken::new()).unwrap();
    assert_eq!((report.events_pruned, kernel.log(100).unwrap().len()), (0, 13));
    assert!(kernel.event(&events[0]).is_ok() && kernel.objects().get(&old).is_ok());

    let options = GcOptions { keep_events: Some(3) };
    let report = kernel.gc(&options, &CancelToken::new()).unwrap();
    assert_eq!(report.events_pruned, 10);
    assert!(report.objects.removed >= 10, "{report:?}");
    assert_eq!(kernel.objects().get(&old).unwrap_err().kind, ErrorKind::NotFound);
    assert!(kernel.objects().get(&kept).is_ok());
    let kept: Vec<_> = kernel.log(100).unwrap().into_iter().map(|entry| entry.handle).collect();
    assert_eq!(kept, [undone, events[11], events[10]]);
    for kernel in [&kernel, &fork] {
        let session = kernel.session();
        let verification = kernel.verify_chain(session.name(), None).unwrap();
        assert!(verification.valid, "{verification:#?}");
    }
    let chain = kernel.export_chain().unwrap();
    assert_eq!((chain.pruned, verify(&text(&chain), None).valid), (10, true));
    // Life goes on: state, undo of what is kept, further events, a later kernel.
    assert_eq!(kernel.session().get("n").unwrap(), Some(json!(11)));
    kernel.undo(&undone, &UndoOptions::default()).unwrap();
    assert_eq!(std::fs::read_to_string(root.path().join("a")).unwrap(), "12\n");
    assert!(kernel.verify_chain(&SessionName::default(), None).unwrap().valid);
    assert!(
        kernel
            .verify(None, None, &CancelToken::new())
            .unwrap()
            .damage
            .is_empty()
    );
}

#[test]
fn receipts_are_those_of_the_published_vectors() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/receipts.json");
    let vectors: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let canonical = vectors["canonical"].as_array().unwrap();
    for vector in canonical {
        let value: Value = serde_json::from_str(vector["json"].as_str().unwrap()).unwrap();
        assert_eq!(sorted_json_digest(&value).unwrap(), vector["digest"], "{vector}");
        let text = String::from_utf8(zerostack::canonical_json(&value).unwrap()).unwrap();
        assert_eq!(text, vector["canonical"], "{vector}");
    }
    let receipts = vectors["receipts"].as_array().unwrap();
    for vector in receipts {
        let subject: Subject = serde_json::from_value(vector["subject"].clone()).unwrap();
        for (schema, name) in [
            (ReceiptSchema::V1, "receipt.v1"),
            (ReceiptSchema::Dreamnet, "dreamnet.receipt.v1"),
        ] {
            let receipt = Receipt::issue(schema, vector["issuer"].as_str().unwrap(), subject.clone()).unwrap();
            assert_eq!(
                (&receipt.digest, &receipt.content_hash),
                (
                    &vector[name].as_str().unwrap().to_owned(),
                    &vector["contentHash"].as_str().unwrap().to_owned()
                )
            );
            let file = text(&receipt);
            assert!(verify(&file, None).valid);
            let value: Value = serde_json::from_slice(&file).unwrap();
            for mutated in mutations(&value) {
                assert!(!verify(&text(&mutated), None).valid, "{mutated:#}");
            }
        }
    }
    assert!(canonical.len() >= 9 && receipts.len() >= 2);
}

#[test]
fn each_committed_effect_can_emit_a_receipt() {
    let ws = Workspace::new(&[("a", "1\n"), ("b", "2\n")]);
    let stream = ws.kernel.events();
    ws.run("await z.edit('a', {find: '1', replacement: '2'}); await z.edit('b', {remove: true}, {expect: 'any'})");
    ws.run("await z.edit('a', {find: '2', replacement: '3'}); throw new Error('no')");
    let receipts: Vec<_> = std::iter::from_fn(|| stream.try_next())
        .map(|recorded| Receipt::of_event(ReceiptSchema::V1, "test:issuer", &recorded.handle, &recorded.event).unwrap())
        .collect();
    assert_eq!((receipts[0].len(), receipts[1].len()), (2, 0));
    for receipt in &receipts[0] {
        assert!(verify(&text(receipt), None).valid);
    }
    assert!(receipts[0][1].subject.payload.0["after"].is_null());
}
