//! Cancellation at any instant: every response valid, the tree right, nothing leaked, and the response soon.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use zero_contracts::CancelToken;
use zero_contracts::response::{Disposition, Outcome};
use zerostack::CellOptions;

use crate::hub_support::Workspace;

fn with_token(token: &CancelToken) -> CellOptions {
    CellOptions {
        cancel: Some(token.clone()),
        ..CellOptions::default()
    }
}

/// Descriptors of this process, and its children.
fn held() -> (usize, usize) {
    let children: usize = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
        .map(|children| children.split_whitespace().count())
        .sum();
    (std::fs::read_dir("/proc/self/fd").unwrap().count(), children)
}

#[test]
fn of_200_cells_half_are_cancelled_at_random_instants() {
    const CELLS: u64 = 200;
    let names: Vec<String> = (0..CELLS).map(|n| format!("f{n}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "0\n")).collect();
    let ws = Workspace::new(&files);
    ws.run("await z.run(['true'])");
    let before = held();
    // A fixed seed: the instants are random against the cells, and the same in every run.
    let seed = AtomicU64::new(0x9e37_79b9_7f4a_7c15);
    let random = || {
        let next = |x: u64| {
            x.wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407)
        };
        next(
            seed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |x| Some(next(x)))
                .unwrap(),
        ) >> 33
    };
    let next = AtomicU64::new(0);
    let outcomes = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::SeqCst);
                    if n >= CELLS {
                        break;
                    }
                    let (token, name) = (CancelToken::new(), format!("f{n}"));
                    let work = match n % 5 {
                        0 => "await z.run('echo more >> NAME; sleep 0.05')",
                        1 => "await z.find('0'); await new Promise(r => setTimeout(r, 30))",
                        2 => "await z.state.set('NAME', 1)",
                        3 => "await z.edit('NAME.new', {create: 'x'}); await z.edit('NAME.new', {remove: true})",
                        _ => "for (let i = 0; i < 2e6; i++) {}",
                    };
                    let cell = format!("await z.edit('NAME', {{find: '0', replacement: '1'}}); {work}; return 'NAME'");
                    let cell = cell.replace("NAME", &name);
                    let response = std::thread::scope(|inner| {
                        if n.is_multiple_of(2) {
                            let (token, wait) = (token.clone(), random() % 150);
                            inner.spawn(move || {
                                std::thread::sleep(Duration::from_millis(wait));
                                token.cancel();
                            });
                        }
                        ws.kernel.execute_cell_with(&cell, with_token(&token))
                    });
                    outcomes.lock().unwrap().push((n, response));
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap();
    let mut cancelled = 0;
    for (n, response) in &outcomes {
        let name = format!("f{n}");
        let conflict = response.error.as_ref().is_some_and(|e| e.retryable);
        match response.outcome {
            Outcome::Completed => {
                assert!(ws.file(&name).starts_with("1\n"), "{name}");
                assert_eq!(response.value.as_ref().unwrap().0, json!(name));
                assert_eq!((response.ledger.live_tasks, response.ledger.live_children), (0, 0));
                assert_eq!(response.effects.disposition, Disposition::Committed);
            }
            Outcome::Cancelled => {
                cancelled += 1;
                assert_eq!((n % 2, ws.file(&name).as_str()), (0, "0\n"), "{name}: {response:#?}");
                assert_ne!(response.effects.disposition, Disposition::Committed);
            }
            // Two cells of one session that set facts at the same time: one of them has to try again.
            Outcome::Failed => {
                assert!(conflict && n % 5 == 2, "{name}: {response:#?}");
                assert_eq!(ws.file(&name), "0\n");
            }
        }
        let event = ws.kernel.event(&response.event.unwrap()).unwrap();
        assert_eq!(event.outcome, response.outcome);
        assert!(response.effects.conflicts.is_empty(), "{response:#?}");
    }
    assert!(
        outcomes.len() as u64 == CELLS && cancelled > 20,
        "{cancelled} cancelled"
    );
    assert_eq!(ws.tree().len() as u64, CELLS, "a file was left behind");
    // What a thread held is given back a moment after it ended.
    let begun = Instant::now();
    while held() != before && begun.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(held(), before, "descriptors and children");
    assert!(ws.kernel.status().unwrap().running.is_empty());
    let session = ws.kernel.session();
    assert!(ws.kernel.verify_chain(session.name(), None).unwrap().valid);
}

#[test]
fn a_cancelled_cell_answers_soon_whatever_it_does() {
    let source: String = (0..400)
        .map(|n| format!("pub fn function_{n}() {{ function_{}(); }}\n", n / 2))
        .collect();
    let names: Vec<String> = (0..150).map(|n| format!("src/m{n}.rs")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), source.as_str())).collect();
    for cell in [
        // A cold index.
        "await z.find('function_3', {mode: 'callers'})",
        // The snapshot that a command begins with.
        "await z.run('true')",
        "for (;;) {}",
        "await z.run('sleep 30')",
        "await new Promise(() => setTimeout(() => {}, 30000))",
    ] {
        let ws = Workspace::new(&files);
        let token = CancelToken::new();
        let cancelled = std::thread::scope(|scope| {
            let canceller = token.clone();
            let at = scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(150));
                canceller.cancel();
                Instant::now()
            });
            let response = ws.kernel.execute_cell_with(cell, with_token(&token));
            let ended = Instant::now();
            (response, ended.saturating_duration_since(at.join().unwrap()))
        });
        let (response, late) = cancelled;
        assert_ne!(response.outcome, Outcome::Failed, "{cell}: {:?}", response.error);
        // Far from the promise that the bench measures: a loaded machine must not fail this test.
        assert!(late < Duration::from_secs(5), "{cell}: {late:?}");
    }
}
