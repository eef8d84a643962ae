//! The host's hand on sessions: facts, last response, reset, forks, shutdown.

use std::time::{Duration, Instant};

use serde_json::json;
use zero_contracts::event::HostAct;
use zero_contracts::response::{Outcome, Phase};
use zero_contracts::{CancelToken, CellId, ErrorKind, Handle, SessionName};
use zerostack::{CellOptions, ZeroKernel};

use crate::hub_support::{Workspace, config};

fn name(text: &str) -> SessionName {
    SessionName::new(text).unwrap()
}

/// Waits until something is so.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn facts_of_the_host_and_of_cells_are_the_same() {
    let ws = Workspace::new(&[]);
    let session = ws.kernel.session();
    assert_eq!((session.name().as_str(), session.get("a").unwrap()), ("default", None));
    session.set("a", json!({"n": 1}), Some(json!(null))).unwrap();
    ws.value("await z.state.set('b', (await z.state.get('a')).n + 1)");
    assert_eq!(session.get("b").unwrap(), Some(json!(2)));
    let keys: Vec<_> = session.list("").unwrap().into_iter().map(|entry| entry.key).collect();
    assert_eq!(keys, ["a", "b"]);

    let error = session.set("a", json!(2), Some(json!(7))).unwrap_err();
    assert_eq!(
        (error.kind, session.get("a").unwrap()),
        (ErrorKind::Conflict, Some(json!({"n": 1})))
    );
    assert_eq!(
        session.set("", json!(1), None).unwrap_err().kind,
        ErrorKind::InvalidInput
    );
    session.delete("a").unwrap();
    session.delete("a").unwrap();
    session.reset().unwrap();
    assert_eq!(session.list("").unwrap(), []);
    assert_eq!(ws.value("return z.state.list()"), json!([]));

    // Each change is an event, and the states of the chain join.
    let events: Vec<_> = ws
        .kernel
        .log(100)
        .unwrap()
        .iter()
        .map(|entry| ws.kernel.event(&entry.handle).unwrap())
        .collect();
    let acts: Vec<_> = events.iter().rev().filter_map(|event| event.act.clone()).collect();
    let set = |key: &str| HostAct::Set { keys: vec![key.into()] };
    // The refused change is an event, too: it failed.
    assert_eq!(acts, [set("a"), set("a"), HostAct::Reset]);
    for pair in events.windows(2) {
        assert_eq!(pair[0].state.before, pair[1].state.after);
    }
}

#[test]
fn the_last_response_comes_back_from_its_event() {
    let ws = Workspace::new(&[("a", "1\n")]);
    assert_eq!(ws.kernel.session().last_response().unwrap(), None);
    for cell in [
        "console.log('hello'); await z.edit('a', {find: '1', replacement: '2'}); return {big: 'x'.repeat(100000), a: [1]}",
        "await z.state.set('k', 1); return null",
        "throw new Error('no')",
        "return (",
        "",
    ] {
        let response = ws.run(cell);
        let again = ZeroKernel::open(config(ws.root.path(), ws.store.path())).unwrap();
        assert_eq!(
            again.session().last_response().unwrap(),
            Some(response.clone()),
            "{cell}"
        );
        // What the host does itself is no response.
        ws.kernel.session().set("n", json!(cell), None).unwrap();
        assert_eq!(ws.kernel.session().last_response().unwrap(), Some(response), "{cell}");
    }
}

#[test]
fn a_fork_copies_on_write() {
    let ws = Workspace::new(&[]);
    ws.value("await z.state.set('a', 1)");
    let fork = ws.kernel.fork_session(name("fork"), false).unwrap();
    assert_eq!(fork.session().name().as_str(), "fork");
    assert_eq!(fork.execute_cell("return z.state.get('a')").value.unwrap().0, 1);
    fork.execute_cell("await z.state.set('a', 2)");
    ws.value("await z.state.set('b', 3)");
    assert_eq!(
        ws.value("return z.state.list()"),
        json!([{"key": "a", "value": 1}, {"key": "b", "value": 3}])
    );
    assert_eq!(fork.session().list("").unwrap().len(), 1);
    assert_eq!(fork.session().get("a").unwrap(), Some(json!(2)));
    // The chain goes on from where the other one stood.
    let first = fork.event(&fork.log(10).unwrap().last().unwrap().handle).unwrap();
    assert_eq!(first.act, Some(HostAct::Fork { from: name("default") }));
    let before = ws.kernel.event(&Handle::event(first.previous.unwrap())).unwrap();
    assert_eq!(
        (before.session.as_str(), before.state.after),
        ("default", first.state.after)
    );

    let taken = ws.kernel.fork_session(name("fork"), true).err().unwrap();
    assert_eq!((taken.kind, taken.retryable), (ErrorKind::Conflict, false));
    assert_eq!(
        ws.kernel.fork_session(name("default"), true).err().unwrap().kind,
        ErrorKind::Conflict
    );
    // A later kernel finds the fork under its name.
    let mut config = config(ws.root.path(), ws.store.path());
    config.session = name("fork");
    assert_eq!(
        ZeroKernel::open(config).unwrap().session().get("a").unwrap(),
        Some(json!(2))
    );
}

#[test]
fn an_attached_fork_ends_with_its_parent_and_a_detached_one_does_not() {
    let ws = Workspace::new(&[]);
    let attached = ws.kernel.fork_session(name("attached"), true).unwrap();
    let below = attached.fork_session(name("below"), true).unwrap();
    let detached = ws.kernel.fork_session(name("detached"), false).unwrap();
    let cells: Vec<_> = [&ws.kernel, &attached, &below, &detached]
        .map(|kernel| {
            let kernel = kernel.clone();
            std::thread::spawn(move || {
                kernel.execute_cell("const end = Date.now() + 20000; while (Date.now() < end && !(await z.state.get('never'))) {} return 1")
            })
        })
        .into();
    until("four cells run", || ws.kernel.status().unwrap().running.len() == 4);
    let begun = Instant::now();
    let left = ws.kernel.shutdown(Duration::from_secs(10)).unwrap();
    assert!(left.is_empty() && begun.elapsed() < Duration::from_secs(5), "{left:?}");
    let running = ws.kernel.status().unwrap().running;
    assert_eq!(running.len(), 1);
    assert!(detached.cancel(&running[0]) && !detached.cancel(&CellId::new("unknown").unwrap()));
    let outcomes: Vec<_> = cells.into_iter().map(|cell| cell.join().unwrap().outcome).collect();
    assert_eq!(outcomes, [Outcome::Cancelled; 4]);

    let refused = attached.execute_cell("return 1");
    assert_eq!(
        (refused.outcome, refused.error.unwrap().phase),
        (Outcome::Cancelled, Phase::Rejected)
    );
    assert!(attached.status().unwrap().closed && !detached.status().unwrap().closed);
    assert_eq!(detached.execute_cell("return 1").outcome, Outcome::Completed);
}

#[test]
fn a_cell_is_cancelled_by_its_name_and_the_hosts_token_is_not() {
    let ws = Workspace::new(&[("a", "1\n")]);
    let (id, token) = (CellId::new("mine").unwrap(), CancelToken::new());
    let options = CellOptions {
        id: Some(id.clone()),
        cancel: Some(token.clone()),
        ..CellOptions::default()
    };
    let kernel = ws.kernel.clone();
    let given = options.clone();
    let cell = std::thread::spawn(move || {
        kernel.execute_cell_with(
            "await z.edit('a', {find: '1', replacement: '2'}); await z.run('sleep 20')",
            given,
        )
    });
    until("the cell runs", || ws.kernel.status().unwrap().running == [id.clone()]);
    std::thread::sleep(Duration::from_millis(300));
    assert!(ws.kernel.cancel(&id));
    assert_eq!(cell.join().unwrap().outcome, Outcome::Cancelled);
    assert!(!token.is_cancelled() && !ws.kernel.cancel(&id));
    assert_eq!(ws.file("a"), "1\n");
    // A name is used once.
    let again = ws.kernel.execute_cell_with("return 1", options);
    assert_eq!(again.error.unwrap().path.as_deref(), Some("id"));
}

#[test]
fn a_shutdown_says_what_it_could_not_end_in_time() {
    let ws = Workspace::new(&[]);
    let kernel = ws.kernel.clone();
    // A command that does not obey costs the grace, which is longer than this shutdown has.
    let cell =
        std::thread::spawn(move || kernel.execute_cell("await z.run(`trap '' TERM; sleep 20 & wait; sleep 20`)"));
    until("the command runs", || ws.kernel.status().unwrap().lease.is_some());
    std::thread::sleep(Duration::from_millis(300));
    let left = ws.kernel.shutdown(Duration::ZERO).unwrap();
    assert_eq!(left.cells.len(), 1);
    assert!(ws.kernel.shutdown(Duration::from_secs(20)).unwrap().is_empty());
    assert_eq!(cell.join().unwrap().outcome, Outcome::Cancelled);
}

/// A parser cannot be interrupted: the cell is over at its deadline, and the shutdown waits for what still reads its source.
#[test]
fn a_shutdown_waits_for_parsers_that_nobody_waits_for() {
    let ws = Workspace::new(&[]);
    let levels = 12_000;
    let source = format!("type T = {}b{}; return 1", "(a:".repeat(levels), ")=>c".repeat(levels));
    let options = CellOptions {
        timeout: Some(Duration::from_millis(30)),
        ..CellOptions::default()
    };
    let response = ws.kernel.execute_cell_with(&source, options);
    assert_eq!(response.error.map(|error| error.kind), Some(ErrorKind::Deadline));
    let left = ws.kernel.shutdown(Duration::from_secs(120)).unwrap();
    assert!(left.is_empty(), "{left:?}");
    // Other tests of this process may parse (not under nextest).
    if std::env::var_os("NEXTEST").is_some() {
        let threads = std::fs::read_dir("/proc/self/task").unwrap();
        let names =
            threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")).unwrap_or_default());
        let names: Vec<_> = names.collect();
        assert!(!names.iter().any(|name| name.trim() == "zero-parse"), "{names:?}");
    }
}

/// Whatever of the store is removed while no kernel has it open: what cells commit afterwards is committed whole, files and
/// state, and an event is told for it.
#[test]
fn what_is_removed_from_the_store_takes_nothing_from_later_cells() {
    let write = |n: u32| format!("await z.edit('f{n}', {{create: '{n}'}}); await z.state.set('n', {n}); return {n}");
    let entries = |directory: &std::path::Path| -> Vec<String> {
        let names = std::fs::read_dir(directory).expect("readable");
        names
            .map(|entry| entry.expect("readable").file_name().into_string().expect("text"))
            .collect()
    };
    let sample = Workspace::new(&[]);
    sample.run(&write(0));
    let all = entries(sample.store.path());
    assert!(
        all.iter().any(|name| name == "journal") && all.iter().any(|name| name == "sessions.sqlite"),
        "{all:?}"
    );
    // What is in objects is what the rest speaks of.
    for removed in all.iter().filter(|name| *name != "objects") {
        let ws = Workspace::new(&[]);
        for n in 0..6 {
            ws.run(&write(n));
        }
        let (root, store) = (ws.root.path().to_owned(), ws.store.path().to_owned());
        drop(ws.kernel);
        let place = store.join(removed);
        if place.is_dir() {
            for name in entries(&place) {
                let _ = std::fs::remove_file(place.join(name));
            }
        }
        let _ = std::fs::remove_file(&place);
        for n in 6..9 {
            // A host of its own each time: nothing is remembered in memory.
            let kernel = ZeroKernel::open(config(&root, &store)).expect("the kernel opens");
            let response = kernel.execute_cell(&write(n));
            assert_eq!(response.error, None, "{removed}: cell {n}");
            let response = kernel.execute_cell("return await z.state.get('n')");
            assert_eq!(response.value, Some(json!(n).into()), "{removed}: after cell {n}");
            assert!(root.join(format!("f{n}")).exists(), "{removed}");
        }
    }
}
