//! A host that is killed: the next kernel finds everything as it was, or as it was committed.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use zero_contracts::response::{Disposition, Outcome};
use zerostack::{Capture, ZeroKernel};

use crate::hub_support::{Workspace, config, isolated, tree};

const ROOT: &str = "ZEROSTACK_TEST_ROOT";
const STORE: &str = "ZEROSTACK_TEST_STORE";

/// The host that is killed: changes the tree and waits in a command.
#[test]
#[ignore = "started by the tests below"]
fn child_that_is_killed() {
    let (Some(root), Some(store)) = (std::env::var_os(ROOT), std::env::var_os(STORE)) else {
        return;
    };
    let mut config = config(&PathBuf::from(root), &PathBuf::from(store));
    config.capture = Capture::Baseline;
    let kernel = ZeroKernel::open(config).unwrap();
    kernel.execute_cell(
        "await z.edit('a', {find: '1', replacement: '2'}); await z.edit('new/b', {create: 'x'});
         await z.run('rm -r d; echo more >> a; chmod 600 a');
         await z.run('sleep 100');",
    );
}

#[test]
fn sigkill_before_the_commit_leaves_no_trace() {
    let ws = Workspace::new(&[("a", "1\n"), ("d/x", "x"), ("d/e/y", "y")]);
    let before = ws.tree();
    let (root, store) = (ws.root.path().to_str().unwrap(), ws.store.path().to_str().unwrap());
    let mut child = isolated("hub_crash::child_that_is_killed", &[(ROOT, root), (STORE, store)]);
    // Seen from outside: the tier `baseline` shows a command's work in the live tree while the cell runs.
    let begun = Instant::now();
    while ws.has("d") {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the child never came to its command"
        );
        assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    child.kill().unwrap();
    child.wait().unwrap();

    let begun = Instant::now();
    let response = loop {
        // The lease stays with the supervisor until its tree is gone; a cell that wants to write waits for it.
        let response = ws
            .kernel
            .execute_cell("await z.edit('after', {create: 'x'}); await z.edit('after', {remove: true})");
        if response.outcome == Outcome::Completed || begun.elapsed() > Duration::from_secs(30) {
            break response;
        }
    };
    assert_eq!(response.error, None);
    assert_eq!(tree(ws.root.path()), before);
    let events = ws.kernel.log(10).unwrap();
    let dead = ws.kernel.event(&events[1].handle).unwrap();
    assert_eq!(
        (dead.outcome, dead.disposition),
        (Outcome::Failed, Disposition::Restored)
    );
}

/// 500 cells in a process of their own, which prints what it held after 100 and after all.
#[test]
#[ignore = "started by the test below"]
fn child_of_500_cells() {
    let ws = Workspace::new(&[("a", "1\n")]);
    let cells = [
        "return 1",
        "return (await z.read('a')).length",
        "return (await z.find('1')).total",
        "await z.edit('a', {find: '1', replacement: '1'}); await z.edit('b', {create: 'x'}); await z.edit('b', {remove: true})",
        "await z.state.set('n', Math.random())",
        "throw new Error('x')",
        "await z.edit('b', {create: 'x'}); throw new Error('x')",
    ];
    for n in 0..500 {
        let response = ws.run(cells[n % cells.len()]);
        assert_eq!(response.outcome == Outcome::Failed, response.error.is_some());
        if n == 100 || n == 499 {
            // What a thread held is given back a moment after it ended.
            std::thread::sleep(Duration::from_millis(300));
            let held = |name: &str| std::fs::read_dir(format!("/proc/self/{name}")).unwrap().count();
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let rss = status
                .lines()
                .find(|line| line.starts_with("VmRSS"))
                .unwrap()
                .split_whitespace()
                .nth(1)
                .unwrap()
                .to_owned();
            println!("held {} {} {rss}", held("task"), held("fd"));
        }
    }
    let children = std::fs::read_to_string(format!("/proc/self/task/{}/children", std::process::id())).unwrap();
    println!("children [{}]", children.trim());
    let names: Vec<_> = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|task| {
            std::fs::read_to_string(task.unwrap().path().join("comm"))
                .unwrap()
                .trim()
                .to_owned()
        })
        .collect();
    println!("threads {names:?}");
}

#[test]
fn five_hundred_cells_level_off_and_an_idle_kernel_holds_nothing() {
    let mut child = isolated("hub_crash::child_of_500_cells", &[]);
    let lines: Vec<String> = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap)
        .collect();
    assert!(child.wait().unwrap().success(), "{lines:#?}");
    let held: Vec<Vec<u64>> = lines
        .iter()
        .filter_map(|line| {
            line.split_once("held ")
                .map(|(_, numbers)| numbers.split(' ').map(|n| n.parse().unwrap()).collect())
        })
        .collect();
    let [early, late] = held.as_slice() else {
        panic!("{lines:#?}")
    };
    assert_eq!(
        (early[0], early[1]),
        (late[0], late[1]),
        "threads and descriptors: {lines:#?}"
    );
    assert!(late[2] < early[2] + early[2] / 4 + 16_384, "RSS in KiB: {lines:#?}");
    assert!(lines.iter().any(|line| line.ends_with("children []")), "{lines:#?}");
    // The test harness itself has two threads: the main one and the one of this test. V8 has its one helper.
    let threads = lines.iter().find(|line| line.starts_with("threads")).unwrap();
    assert!(late[0] <= 3, "{threads}");
}
