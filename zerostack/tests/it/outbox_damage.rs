//! A damaged outbox: it is told of, with the file and the way out, and what does not need it goes on.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use zero_contracts::CancelToken;
use zero_contracts::response::Outcome;
use zerostack::{KernelConfig, ZeroKernel};

use crate::hub_support::{config, with_input};
use crate::outbox_support::{Backend, Outside, ToOutside, until_over, workspace};

const SEND: &str = "return (await z.apply({effect: 'mail', key: input.key, payload: {}})).status";

/// What is done to the file.
type Damage = fn(&Path);

#[test]
fn a_damaged_outbox_is_told_of_and_is_not_made_anew_unasked() {
    let damages: [(&str, Damage); 5] = [
        ("nothing", |_| {}),
        ("no database", |file| std::fs::write(file, "x".repeat(40_000)).unwrap()),
        ("a changed start", |file| {
            let mut bytes = std::fs::read(file).unwrap();
            bytes[..16].fill(b'?');
            std::fs::write(file, bytes).unwrap();
        }),
        ("a lost end", |file| {
            let file = std::fs::File::options().write(true).open(file).unwrap();
            file.set_len(5_000).unwrap();
        }),
        ("changed tables", |file| {
            let mut bytes = std::fs::read(file).unwrap();
            bytes[4_096..].fill(0xa5);
            std::fs::write(file, bytes).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let outside = Outside::blind();
        let ws = workspace(&Backend(None), &outside, |_| {});
        let send = |kernel: &ZeroKernel, key: &str| {
            let options = with_input(json!({ "key": key }));
            kernel.execute_cell_with(SEND, options)
        };
        assert_eq!(send(&ws.kernel, "first").outcome, Outcome::Completed);
        until_over(&ws.kernel);
        let (root, store) = (ws.root, ws.store);
        drop(ws.kernel);
        let file = store.path().join("outbox.sqlite");
        damage(&file);
        let left = std::fs::read(&file).unwrap();
        let configuration = || KernelConfig {
            effects: Backend(None).effects().with("mail", ToOutside(Arc::clone(&outside))),
            ..config(root.path(), store.path())
        };
        let looked_at = zerostack::examine(&configuration(), &CancelToken::new()).unwrap();
        let kernel = ZeroKernel::open(configuration()).unwrap();
        let verified = kernel.verify(None, None, &CancelToken::new()).unwrap();
        assert_eq!(
            (verified.valid, looked_at.healthy),
            (name == "nothing", name == "nothing"),
            "{name}"
        );
        let sent = send(&kernel, "second");
        if name == "nothing" {
            assert_eq!(sent.error, None);
            continue;
        }
        for damage in [&verified.damage, &looked_at.damage] {
            assert!(
                damage
                    .iter()
                    .any(|found| found.what == "outbox" && found.detail.contains("move it away")),
                "{name}: {damage:?}"
            );
        }
        let error = sent.error.unwrap();
        assert_eq!(error.path.as_deref(), file.to_str(), "{name}: {error:?}");
        assert!(error.detail.contains("move it away"), "{name}: {error:?}");
        assert_eq!(kernel.execute_cell("return z.read('a')").error, None, "{name}");
        drop(kernel);
        assert_eq!(std::fs::read(&file).unwrap(), left, "{name}");
        assert_eq!(outside.times().values().sum::<usize>(), 1, "{name}");
    }
}

/// An outbox that is gone knows nothing of what was sent: only where a probe says that it was not is it sent again.
#[test]
fn an_outbox_that_is_lost_sends_nothing_twice() {
    for (name, outside) in [("blind", Outside::blind()), ("probed", Outside::honest())] {
        let ws = workspace(&Backend(None), &outside, |_| {});
        let send = |kernel: &ZeroKernel, key: &str| {
            let options = with_input(json!({ "key": key }));
            let response = kernel.execute_cell_with(SEND, options);
            assert_eq!(response.error, None, "{name}: {key}");
        };
        send(&ws.kernel, "first");
        send(&ws.kernel, "second");
        until_over(&ws.kernel);
        let (root, store) = (ws.root, ws.store);
        drop(ws.kernel);
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(store.path().join(format!("outbox.sqlite{suffix}")));
        }
        let kernel = ZeroKernel::open(KernelConfig {
            effects: Backend(None).effects().with("mail", ToOutside(Arc::clone(&outside))),
            ..config(root.path(), store.path())
        })
        .unwrap();
        send(&kernel, "third");
        for _ in 0..20 {
            kernel.reconcile(&CancelToken::new()).unwrap();
        }
        let times = outside.times();
        assert_eq!(times.len(), 3, "{name}: {times:?}");
        assert!(times.values().all(|times| *times == 1), "{name}: {times:?}");
    }
}
