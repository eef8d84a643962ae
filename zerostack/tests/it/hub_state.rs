//! `z.state`, events and the response through the whole kernel.

use std::path::Path;

use serde_json::json;
use zero_contracts::ErrorKind;
use zero_contracts::response::{Disposition, Outcome};
use zerostack::{KernelConfig, ZeroKernel};

use crate::hub_support::{Workspace, config, isolated};

const ROOT: &str = "ZEROSTACK_TEST_ROOT";
const STORE: &str = "ZEROSTACK_TEST_STORE";

#[test]
fn facts_live_on_in_later_cells_and_kernels() {
    let ws = Workspace::new(&[]);
    let response =
        ws.run("await z.state.set('a/b', {n: 1}); return [await z.state.get('a/b'), await z.state.get('none')]");
    assert_eq!(response.value.unwrap().0, json!([{"n": 1}, null]));
    assert!(!response.state.unchanged && response.state.after.is_some());
    let again = ZeroKernel::open(config(ws.root.path(), ws.store.path())).unwrap();
    let response = again.execute_cell(
        "return [await z.state.test('a/b', {n: 1}), await z.state.list('a/'), await z.state.delete('a/b')]",
    );
    assert_eq!(
        response.value.unwrap().0,
        json!([true, [{"key": "a/b", "value": {"n": 1}}], true])
    );
    assert_eq!(response.state.after, None);
}

#[test]
fn a_failed_cell_sets_nothing() {
    let ws = Workspace::new(&[]);
    ws.value("await z.state.set('a', 1)");
    ws.error("await z.state.set('a', 2); throw new Error('no')");
    assert_eq!(ws.value("return z.state.get('a')"), 1);
    let error = ws.error("await z.state.set('a', 3, {expect: 7})");
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert_eq!(
        ws.error("await z.state.set('a', 'x'.repeat(9000))").kind,
        ErrorKind::Budget
    );
    assert_eq!(
        ws.error("await z.state.set('a', 1, {expct: 7})").kind,
        ErrorKind::InvalidInput
    );
}

/// Reads a number, waits, and sets the next one: as often as it takes to have done so ten times.
fn count(kernel: &ZeroKernel) {
    let increment = "const n = await z.state.get('n') ?? 0; await new Promise(r => setTimeout(r, 5)); await z.state.set('n', n + 1)";
    let mut done = 0;
    while done < 10 {
        let response = kernel.execute_cell(increment);
        match response.outcome {
            Outcome::Completed => done += 1,
            _ => assert!(
                response.error.as_ref().is_some_and(|e| e.retryable),
                "{:?}",
                response.error
            ),
        }
    }
}

#[test]
fn two_kernels_of_one_session_never_lose_an_update() {
    let ws = Workspace::new(&[]);
    let other = ZeroKernel::open(config(ws.root.path(), ws.store.path())).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| count(&ws.kernel));
        scope.spawn(|| count(&other));
    });
    assert_eq!(ws.value("return z.state.get('n')"), 20);
}

/// One of the processes of the next test.
#[test]
#[ignore = "started by the test below"]
fn child_that_counts() {
    let (Some(root), Some(store)) = (std::env::var_os(ROOT), std::env::var_os(STORE)) else {
        return;
    };
    count(&ZeroKernel::open(config(Path::new(&root), Path::new(&store))).unwrap());
    println!("counted");
}

#[test]
fn two_processes_of_one_session_never_lose_an_update() {
    let ws = Workspace::new(&[]);
    let (root, store) = (ws.root.path().to_str().unwrap(), ws.store.path().to_str().unwrap());
    let children = [(); 2].map(|()| isolated("hub_state::child_that_counts", &[(ROOT, root), (STORE, store)]));
    // This process has its say, too.
    count(&ws.kernel);
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("counted"), "{said}");
    }
    assert_eq!(ws.value("return z.state.get('n')"), 30);
    // Every change is in the one chain of the session, and each begins where the one before it ended. A cell that came too late
    // tells the state that it saw.
    let entries = ws.kernel.log(1000).unwrap();
    let events: Vec<_> = entries
        .iter()
        .map(|entry| ws.kernel.event(&entry.handle).unwrap())
        .collect();
    let completed: Vec<_> = events
        .iter()
        .filter(|event| event.outcome == Outcome::Completed)
        .collect();
    for pair in completed.windows(2) {
        assert_eq!(pair[0].state.before, pair[1].state.after);
    }
    let changes = completed.iter().filter(|event| event.state.before != event.state.after);
    assert_eq!(changes.count(), 30);
}

#[test]
fn sessions_do_not_share_facts() {
    let ws = Workspace::new(&[]);
    ws.value("await z.state.set('a', 1)");
    let other = KernelConfig {
        session: "other".parse().unwrap(),
        ..config(ws.root.path(), ws.store.path())
    };
    assert_eq!(
        ZeroKernel::open(other)
            .unwrap()
            .execute_cell("return z.state.get('a')")
            .value
            .unwrap()
            .0,
        json!(null)
    );
}

#[test]
fn the_event_is_read_back_and_chained() {
    let ws = Workspace::new(&[("a", "1\n")]);
    let first = ws.run("await z.edit('a', {find: '1', replacement: '2'}); console.log('said'); return 'v'");
    let second = ws.run("throw new TypeError('x')");
    assert_eq!(first.console, "said\n");
    let event = ws.value(&format!("return z.read('{}')", second.event.unwrap()));
    assert_eq!(
        (&event["schema"], &event["outcome"]),
        (&json!("zerostack.event.v1"), &json!("Failed"))
    );
    assert_eq!(event["previous"], first.event.unwrap().digest.to_hex());
    assert_eq!(event["error"]["kind"], "exception");
    let event = ws.value(&format!("return z.read('{}')", first.event.unwrap()));
    assert_eq!(event["receipts"][0]["path"], "a");
    assert_eq!(event["receipts"][0]["status"], "committed");
    assert_eq!(ws.kernel.log(10).unwrap().len(), 4);
}

#[test]
fn a_large_value_is_projected_and_comes_back_whole() {
    let ws = Workspace::new(&[]);
    let response = ws.run("return {small: 1, big: Array.from({length: 20000}, (_, i) => 'item number ' + i)}");
    assert_eq!(response.outcome, Outcome::Completed);
    let ledger = &response.ledger;
    assert!(
        ledger.tokens_raw > 60_000 && ledger.tokens_visible <= 8_000,
        "{ledger:?}"
    );
    assert_eq!(response.value.as_ref().unwrap().0["small"], 1);
    let handle = response.handles.first().unwrap();
    let whole = ws.value(&format!(
        "const p = await z.read('{handle}', {{pointer: '/big/19999'}}); return p.content"
    ));
    assert_eq!(whole, "\"item number 19999\"");
}

#[test]
fn a_value_that_cannot_be_serialised_says_where() {
    let ws = Workspace::new(&[("a", "1\n")]);
    let response = ws.run("await z.edit('a', {find: '1', replacement: '2'}); return {a: [1, {b: 10n}]}");
    let error = response.error.unwrap();
    assert_eq!(error.kind, ErrorKind::InvalidInput);
    assert!(error.path.unwrap().contains("a[1].b"));
    assert_eq!(response.effects.disposition, Disposition::Restored);
    assert_eq!(ws.file("a"), "1\n");
}
