//! The host's side: input, budgets, policy, injected engines, overlap, admission.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use zero_contracts::response::{Disposition, Outcome, Phase};
use zero_contracts::{Budgets, CancelToken, ErrorKind, Operation};
use zerostack::{CellOptions, KernelConfig, Policy, StoreLocation, ZeroKernel};

use crate::hub_support::{Workspace, config, with_input};

#[test]
fn input_reaches_the_cell() {
    let ws = Workspace::new(&[]);
    let response = ws.kernel.execute_cell_with(
        "return input.a.concat(input.b)",
        with_input(json!({"a": [1], "b": ["x"]})),
    );
    assert_eq!(response.value.unwrap().0, json!([1, "x"]));
}

#[test]
fn the_contract_of_a_response() {
    let ws = Workspace::new(&[("a", "x")]);
    let response = ws.run("await z.read('a'); return 1");
    let json = serde_json::to_value(&response).unwrap();
    assert_eq!(
        (&json["protocol"], &json["outcome"], &json["value"]),
        (&json!("ZeroKernel"), &json!("Completed"), &json!(1))
    );
    assert_eq!(json["effects"]["disposition"], "none");
    assert_eq!(json["ledger"]["calls"], json!({"read": 1}));
    assert_eq!(
        (&json["ledger"]["liveTasks"], &json["ledger"]["liveChildren"]),
        (&json!(0), &json!(0))
    );
    assert!(json["event"].as_str().unwrap().starts_with("z://event/"));
    assert!(json.get("error").is_none());
    assert!(ws.run("").value.is_none());
    assert_eq!(
        serde_json::to_value(ws.run("return null")).unwrap()["value"],
        Value::Null
    );
}

#[test]
fn admission_refuses_before_anything_runs() {
    let ws = Workspace::new(&[]);
    let large = format!("return 1 //{}", "x".repeat(300 * 1024));
    let error = ws.error(&large);
    assert_eq!(
        (error.kind, error.phase, error.path.as_deref()),
        (ErrorKind::InvalidInput, Phase::Rejected, Some("source"))
    );
    let options = CellOptions {
        timeout: Some(Duration::ZERO),
        ..CellOptions::default()
    };
    let response = ws.kernel.execute_cell_with("return 1", options);
    assert_eq!(response.effects.disposition, Disposition::NeverAdmitted);
    let error = response.error.unwrap();
    assert_eq!((error.kind, error.phase), (ErrorKind::Deadline, Phase::Rejected));
    let options = CellOptions {
        timeout: Some(Duration::ZERO),
        ..CellOptions::default()
    };
    let error = ws.kernel.execute_cell_with("return (", options).error.unwrap();
    assert_eq!((error.kind, error.phase), (ErrorKind::Syntax, Phase::Rejected));
    let cancelled = CancelToken::new();
    cancelled.cancel();
    let options = CellOptions {
        cancel: Some(cancelled),
        ..CellOptions::default()
    };
    assert_eq!(
        ws.kernel.execute_cell_with("return 1", options).outcome,
        Outcome::Cancelled
    );
}

#[test]
fn budgets_are_the_hosts() {
    let ws = Workspace::new(&[("a", "x")]);
    let run = |budgets: Budgets, cell: &str| {
        let options = CellOptions {
            budgets: Some(budgets),
            ..CellOptions::default()
        };
        ws.kernel.execute_cell_with(cell, options)
    };
    let response = run(
        Budgets {
            calls: 3,
            ..Budgets::default()
        },
        "for (let i = 0; i < 4; i++) await z.read('a')",
    );
    assert_eq!(response.error.unwrap().kind, ErrorKind::Budget);
    let staged = Budgets {
        staged_bytes: 10,
        ..Budgets::default()
    };
    let response = run(staged, "await z.edit('b', {create: 'x'.repeat(11)})");
    assert_eq!(response.error.unwrap().kind, ErrorKind::Budget);
    let inline = Budgets {
        inline_bytes: 0,
        ..Budgets::default()
    };
    assert_eq!(run(inline, "return (await z.read('a')).kind").value.unwrap().0, "view");
    let console = Budgets {
        console_tokens: 100,
        ..Budgets::default()
    };
    let response = run(console, "for (let i = 0; i < 1000; i++) console.log('line number', i)");
    assert!(
        response.ledger.tokens_raw > 3000 && response.ledger.tokens_visible <= 100,
        "{:?}",
        response.ledger
    );
    let response = ws.run("for (let i = 0; i < 3000; i++) console.log('x'.repeat(200))");
    assert!(response.console.contains("were left out"), "{:.200}", response.console);
    let output = Budgets {
        run_output_bytes: 1000,
        ..Budgets::default()
    };
    assert_eq!(
        run(output, "return (await z.run('yes')).reason").value.unwrap().0,
        "limit"
    );
}

/// Denies one operation, and counts how many calls are inside at once.
struct Watch {
    denied: Option<Operation>,
    inside: AtomicUsize,
    most: AtomicUsize,
    nap: Duration,
}

impl Watch {
    fn new(denied: Option<Operation>, nap: Duration) -> Arc<Self> {
        Arc::new(Self {
            denied,
            inside: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            nap,
        })
    }
}

impl Policy for Watch {
    fn check(&self, operation: Operation, _arguments: &[Value], _token: &CancelToken) -> Result<(), String> {
        if self.denied == Some(operation) {
            return Err("not today".into());
        }
        let now = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        std::thread::sleep(self.nap);
        self.inside.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn a_policy_can_deny_a_call() {
    let policy = Watch::new(Some(Operation::Run), Duration::ZERO);
    let ws = Workspace::with(&[("a", "x")], |config| config.policy = Some(policy));
    assert_eq!(ws.value("return z.read('a')"), "x");
    let error = ws.error("await z.edit('b', {create: 'x'}); await z.run(['true'])");
    assert!(
        error.kind == ErrorKind::Denied && error.detail.contains("not today"),
        "{error:?}"
    );
    assert!(!ws.has("b"));
}

/// Gives up at once when the cell is over, and calls that a denial.
struct Loyal;

impl Policy for Loyal {
    fn check(&self, _: Operation, _: &[Value], token: &CancelToken) -> Result<(), String> {
        while token.check().is_ok() {
            std::thread::sleep(Duration::from_micros(50));
        }
        Err("the cell is over".into())
    }
}

#[test]
fn a_policy_that_gives_up_because_the_cell_is_over_has_denied_nothing() {
    let ws = Workspace::with(&[("a", "x")], |config| config.policy = Some(Arc::new(Loyal)));
    for _ in 0..5 {
        let cancel = CancelToken::new();
        let options = CellOptions {
            cancel: Some(cancel.clone()),
            ..CellOptions::default()
        };
        let response = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(60));
                cancel.cancel();
            });
            ws.kernel.execute_cell_with("return z.read('a')", options)
        });
        assert_eq!(response.outcome, Outcome::Cancelled, "{response:?}");
        let options = CellOptions {
            timeout: Some(Duration::from_millis(60)),
            ..CellOptions::default()
        };
        let late = ws.kernel.execute_cell_with("return z.read('a')", options);
        assert_eq!(late.error.map(|error| error.kind), Some(ErrorKind::Deadline));
    }
}

#[test]
fn eight_slow_reads_and_finds_overlap() {
    let policy = Watch::new(None, Duration::from_millis(100));
    let watch = Arc::clone(&policy);
    let ws = Workspace::with(&[("a", "x")], |config| config.policy = Some(policy));
    let cell = "const calls = []; for (let i = 0; i < 4; i++) calls.push(z.read('a'), z.find('x')); return (await Promise.all(calls)).length";
    assert_eq!(ws.value(cell), 8);
    assert_eq!(watch.most.load(Ordering::SeqCst), 8);
}

#[test]
fn a_store_inside_the_workspace_is_refused_and_a_transient_one_goes() {
    let root = tempfile::tempdir().unwrap();
    let inside = KernelConfig {
        store: StoreLocation::At(root.path().join("store")),
        ..KernelConfig::new(root.path())
    };
    assert_eq!(ZeroKernel::open(inside).err().unwrap().kind, ErrorKind::InvalidInput);
    assert!(std::fs::read_dir(root.path()).unwrap().next().is_none());
    assert_eq!(
        ZeroKernel::open(KernelConfig::new(root.path().join("none")))
            .err()
            .unwrap()
            .kind,
        ErrorKind::NotFound
    );

    let kernel = ZeroKernel::open(KernelConfig {
        store: StoreLocation::Transient,
        ..KernelConfig::new(root.path())
    })
    .unwrap();
    let store = kernel.status().unwrap().store;
    assert!(store.exists());
    drop(kernel);
    assert!(!store.exists());
}

#[test]
fn a_writer_waits_for_the_lease_and_then_hears_who_has_it() {
    let ws = Workspace::new(&[("a", "1\n")]);
    let kernel = ws.kernel.clone();
    let holder = std::thread::spawn(move || {
        kernel.execute_cell(
            "await z.edit('a', {find: '1', replacement: '2'}); await new Promise(r => setTimeout(r, 2500)); return 1",
        )
    });
    std::thread::sleep(Duration::from_millis(700));
    let other = ZeroKernel::open(config(ws.root.path(), ws.store.path())).unwrap();
    let short = CellOptions {
        timeout: Some(Duration::from_millis(500)),
        ..CellOptions::default()
    };
    let response = other.execute_cell_with("await z.edit('b', {create: 'x'})", short);
    let error = response.error.unwrap();
    assert!(
        error.kind == ErrorKind::Busy && error.retryable && error.detail.contains("cell-"),
        "{error:?}"
    );
    // Readers go on meanwhile, and see nothing of it.
    assert_eq!(other.execute_cell("return z.read('a')").value.unwrap().0, "1\n");
    let response = other.execute_cell("await z.edit('b', {create: 'x'})");
    assert_eq!(response.error, None);
    assert_eq!(holder.join().unwrap().outcome, Outcome::Completed);
    assert_eq!(ws.file("a"), "2\n");
}

#[test]
fn variables_and_directory_of_the_cell_reach_its_commands() {
    let ws = Workspace::new(&[("d/x", "")]);
    let options = CellOptions {
        env: BTreeMap::from([("WORD".to_owned(), "from the host".to_owned())]),
        cwd: Some("d".parse().unwrap()),
        ..CellOptions::default()
    };
    let response = ws
        .kernel
        .execute_cell_with("return (await z.run('ls; echo $WORD')).stdout", options);
    assert_eq!(response.value.unwrap().0, "x\nfrom the host\n");
}
