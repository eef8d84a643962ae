//! Several hosts on one workspace, some of which are killed: effects at most once, no lost update, and readers that never
//! see files and state disagree.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zero_contracts::response::{Disposition, Outcome};
use zero_contracts::{CancelToken, EffectState, ErrorKind, Handle, Result, SessionName};
use zerostack::outbox::{
    ChannelFuture, CommandChannel, DispatchError, EffectCall, EffectChannel, EffectGate, EffectStep, Probed,
};
use zerostack::{Effects, KernelConfig, ZeroKernel};

use crate::hub_support::{Workspace, config, isolated};
use crate::outbox_support::{all, told, until_over};

const ROOT: &str = "ZEROSTACK_TEST_ROOT";
const STORE: &str = "ZEROSTACK_TEST_STORE";
const STEP: &str = "ZEROSTACK_TEST_STEP";
const PROBE: &str = "ZEROSTACK_TEST_PROBE";

fn variable(name: &str) -> String {
    std::env::var(name).unwrap()
}

/// A receiver outside that neither refuses nor remembers: a line per call.
struct Plain {
    file: PathBuf,
    probe: bool,
}

impl EffectChannel for Plain {
    fn dispatch<'a>(
        &'a self,
        effect: &'a EffectCall,
        _cancel: &'a CancelToken,
    ) -> ChannelFuture<'a, std::result::Result<Value, DispatchError>> {
        let mut file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(&self.file)
            .unwrap();
        file.write_all(format!("{}\n", effect.handle).as_bytes()).unwrap();
        Box::pin(async { Ok(json!("written")) })
    }

    fn probe<'a>(&'a self, effect: &'a EffectCall, _cancel: &'a CancelToken) -> Option<ChannelFuture<'a, Probed>> {
        let lines = std::fs::read_to_string(&self.file).unwrap_or_default();
        let found = lines.lines().any(|line| line == effect.handle.to_string());
        self.probe.then(|| -> ChannelFuture<'a, Probed> {
            Box::pin(async move {
                if found {
                    Probed::Sent(json!("found"))
                } else {
                    Probed::NotSent
                }
            })
        })
    }
}

/// Kills its process at a step.
struct Kill(EffectStep);

impl EffectGate for Kill {
    fn pass(&self, step: EffectStep, _effect: Option<&Handle>) -> Result<()> {
        if step == self.0 {
            die();
        }
        Ok(())
    }
}

/// Ends this process as nothing but the kernel can.
fn die() -> ! {
    let me = std::process::id().to_string();
    std::process::Command::new("kill")
        .args(["-KILL", &me])
        .status()
        .unwrap();
    unreachable!("killed")
}

fn plain(root: &Path, store: &Path, probe: bool) -> KernelConfig {
    KernelConfig {
        effects: Effects::default().with(
            "plain",
            Plain {
                file: store.join("outside"),
                probe,
            },
        ),
        ..config(root, store)
    }
}

#[test]
#[ignore = "started by the test below"]
fn child_that_dies_at_a_step() {
    let Some(root) = std::env::var_os(ROOT) else { return };
    let mut config = plain(
        &PathBuf::from(root),
        &PathBuf::from(variable(STORE)),
        variable(PROBE) == "yes",
    );
    let step = EffectStep::ALL[variable(STEP).parse::<usize>().unwrap()];
    config.effects.gate = Some(std::sync::Arc::new(Kill(step)));
    let kernel = ZeroKernel::open(config).unwrap();
    let response = kernel.execute_cell("await z.apply({effect: 'plain', key: 'k', payload: 1})");
    println!("it lived: {response:?}");
}

#[test]
fn sigkill_at_every_step_sends_nothing_twice_and_loses_nothing() {
    for (n, step) in EffectStep::ALL.into_iter().enumerate() {
        for probe in [true, false] {
            // A cell alone passes no probe.
            if step == EffectStep::Probed {
                continue;
            }
            let ws = Workspace::new(&[]);
            let (root, store) = (ws.root.path(), ws.store.path());
            let mut child = isolated(
                "outbox_hosts::child_that_dies_at_a_step",
                &[
                    (ROOT, root.to_str().unwrap()),
                    (STORE, store.to_str().unwrap()),
                    (STEP, &n.to_string()),
                    (PROBE, if probe { "yes" } else { "no" }),
                ],
            );
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert!(!lines.any(|line| line.unwrap().contains("it lived")), "{step:?}");
            assert!(!child.wait().unwrap().success());
            // Its lease would live for another half a minute; that its host is dead is known at once.
            let begun = Instant::now();
            let kernel = ZeroKernel::open(plain(root, store, probe)).unwrap();
            let records = until_over(&kernel);
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{step:?}: the lease was waited for"
            );
            let sent = std::fs::read_to_string(store.join("outside")).unwrap_or_default();
            let (state, sent) = (records[0].state, sent.lines().count());
            match (probe, step) {
                (false, EffectStep::Marked) => assert_eq!((state, sent), (EffectState::Abandoned, 0)),
                (false, EffectStep::Answered) => assert_eq!((state, sent), (EffectState::Abandoned, 1)),
                _ => assert_eq!((state, sent), (EffectState::Committed, 1), "{step:?}"),
            }
            assert_eq!(told(&kernel), 1, "{step:?}");
            let leases = kernel.leases().unwrap().list().unwrap();
            let reclaimed: u64 = leases.iter().map(|lease| lease.reclaimed_dead).sum();
            // Before the lease there is none to reclaim; for what is over nobody needs it.
            let held = matches!(
                step,
                EffectStep::Acquired | EffectStep::Claimed | EffectStep::Marked | EffectStep::Answered
            );
            assert_eq!(reclaimed, u64::from(held), "{step:?}: {leases:?}");
        }
    }
}

/// A kernel whose channel `sh` runs a script in `directory`.
fn with_command(ws: &Workspace, script: &str, probe: Option<&str>) -> ZeroKernel {
    let mut channel = CommandChannel::new(["/bin/sh", "-c", script]).unwrap();
    channel.cwd = Some(ws.store.path().to_owned());
    channel.env.insert("WORD".into(), "word".into());
    if let Some(probe) = probe {
        channel = channel.with_probe(["/bin/sh", "-c", probe]).unwrap();
    }
    let config = KernelConfig {
        effects: Effects {
            ceiling: 3,
            ..Effects::default().with("sh", channel)
        },
        ..config(ws.root.path(), ws.store.path())
    };
    ZeroKernel::open(config).unwrap()
}

const SH: &str = "await z.apply({effect: 'sh', key: 'the key', payload: {b: 2, a: 'é'}})";

#[test]
fn a_command_gets_what_it_needs_and_its_output_is_the_evidence() {
    let ws = Workspace::new(&[]);
    let script = "cat; echo \" $ZEROSTACK_EFFECT_KEY $ZEROSTACK_EFFECT_ATTEMPT $WORD\"; echo loud >&2";
    let kernel = with_command(&ws, script, None);
    let response = kernel.execute_cell(SH);
    assert_eq!(response.error, None);
    let [record] = &*all(&kernel) else { panic!("one effect") };
    let expected = json!({"exitCode": 0, "stdout": "{\"a\":\"é\",\"b\":2} the key 1 word\n"});
    assert_eq!(record.evidence.clone().unwrap().0, expected);
}

#[test]
fn exit_codes_say_what_is_known() {
    // (command, probe, state at once, state at the end, times it ran)
    let cases = [
        (
            "echo x >> ran; exit 75",
            None,
            EffectState::Prepared,
            EffectState::Quarantined,
            3,
        ),
        (
            "echo x >> ran; exit 3",
            None,
            EffectState::Dispatched,
            EffectState::Abandoned,
            1,
        ),
        (
            "echo x >> ran; exit 3",
            Some("exit 0"),
            EffectState::Committed,
            EffectState::Committed,
            1,
        ),
        (
            "echo x >> ran; exit 3",
            Some("exit 1"),
            EffectState::Prepared,
            EffectState::Quarantined,
            3,
        ),
        (
            "echo x >> ran; exit 3",
            Some("exit 2"),
            EffectState::Dispatched,
            EffectState::Abandoned,
            1,
        ),
        (
            "echo x >> ran; kill -9 $$",
            Some("exit 0"),
            EffectState::Committed,
            EffectState::Committed,
            1,
        ),
    ];
    for (script, probe, at_once, end, times) in cases {
        let ws = Workspace::new(&[]);
        let kernel = with_command(&ws, script, probe);
        assert_eq!(kernel.execute_cell(SH).error, None);
        assert_eq!(all(&kernel)[0].state, at_once, "{script}, {probe:?}");
        assert_eq!(until_over(&kernel)[0].state, end, "{script}, {probe:?}");
        let ran = std::fs::read_to_string(ws.store.path().join("ran")).unwrap();
        assert_eq!(ran.lines().count(), times, "{script}, {probe:?}");
    }
    // What cannot be started did nothing.
    let ws = Workspace::new(&[]);
    let channel = CommandChannel::new(["/nowhere/program"]).unwrap();
    let config = KernelConfig {
        effects: Effects::default().with("sh", channel),
        ..config(ws.root.path(), ws.store.path())
    };
    let kernel = ZeroKernel::open(config).unwrap();
    kernel.execute_cell(SH);
    assert_eq!(all(&kernel)[0].state, EffectState::Prepared);
    assert_eq!(CommandChannel::new([""]).unwrap_err().kind, ErrorKind::InvalidInput);
}

/// Writes its line only if it lives for half a second.
const SLOW: &str = "echo begun >> begun; sleep 0.5; echo \"$ZEROSTACK_EFFECT\" >> outside";

#[test]
#[ignore = "started by the test below"]
fn child_that_runs_a_slow_command() {
    let Some(root) = std::env::var_os(ROOT) else { return };
    let (root, store) = (PathBuf::from(root), PathBuf::from(variable(STORE)));
    let mut channel = CommandChannel::new(["/bin/sh", "-c", SLOW]).unwrap();
    channel.cwd = Some(store.clone());
    let config = KernelConfig {
        effects: Effects::default().with("sh", channel),
        ..config(&root, &store)
    };
    ZeroKernel::open(config).unwrap().execute_cell(SH);
}

#[test]
fn a_command_whose_host_was_killed_is_gone_before_the_probe_is_believed() {
    let ws = Workspace::new(&[]);
    let (root, store) = (ws.root.path().to_str().unwrap(), ws.store.path());
    let mut child = isolated(
        "outbox_hosts::child_that_runs_a_slow_command",
        &[(ROOT, root), (STORE, store.to_str().unwrap())],
    );
    wait_for(|| store.join("begun").exists(), &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let kernel = with_command(
        &ws,
        SLOW,
        Some("touch outside; grep -qx \"$ZEROSTACK_EFFECT\" outside 2>/dev/null"),
    );
    let records = until_over(&kernel);
    assert_eq!(records[0].state, EffectState::Committed);
    // Long enough for the first one, had it lived.
    std::thread::sleep(Duration::from_millis(600));
    let sent = std::fs::read_to_string(store.join("outside")).unwrap();
    assert_eq!(sent.lines().count(), 1, "{records:?}");
}

fn wait_for(mut condition: impl FnMut() -> bool, child: &mut Child) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came");
        assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
#[ignore = "started by the test below"]
fn child_of_another_session_that_is_killed() {
    let Some(root) = std::env::var_os(ROOT) else { return };
    let mut config = config(&PathBuf::from(root), &PathBuf::from(variable(STORE)));
    config.session = SessionName::new("dead").unwrap();
    let kernel = ZeroKernel::open(config).unwrap();
    kernel.execute_cell(
        "await z.edit('a', {find: '1', replacement: '2'}); await z.edit('b', {create: 'x'});
         await z.run('rm d; touch c; sleep 100')",
    );
}

#[test]
fn whoever_comes_next_recovers_whatever_the_session_and_readers_do_it_first() {
    let ws = Workspace::new(&[("a", "1\n"), ("d", "x")]);
    let before = ws.tree();
    let (root, store) = (ws.root.path().to_str().unwrap(), ws.store.path().to_str().unwrap());
    let mut child = isolated(
        "outbox_hosts::child_of_another_session_that_is_killed",
        &[(ROOT, root), (STORE, store)],
    );
    // The holder's command is at work: a reader goes on, and says so wherever the command's work can be seen.
    let lease = || ws.kernel.status().unwrap().lease.is_some();
    wait_for(lease, &mut child);
    std::thread::sleep(Duration::from_millis(700));
    let found = ws.value("return (await z.find('x')).freshness");
    let seen = ws.tree() != before;
    assert_eq!(found == "uncommitted", seen, "{found}");
    child.kill().unwrap();
    child.wait().unwrap();
    // The supervisor lets go of the lease when the tree is empty; then a cell that only reads finds everything put back.
    let begun = Instant::now();
    while lease() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(
        ws.value("return [await z.read('a'), (await z.find('x')).freshness]"),
        json!(["1\n", "present"])
    );
    assert_eq!(ws.tree(), before);
    if seen {
        let dead = {
            let mut config = config(ws.root.path(), ws.store.path());
            config.session = SessionName::new("dead").unwrap();
            ZeroKernel::open(config).unwrap()
        };
        let events = dead.log(10).unwrap();
        let event = dead.event(&events[0].handle).unwrap();
        assert_eq!(
            (event.outcome, event.disposition),
            (Outcome::Failed, Disposition::Restored)
        );
    }
}

/// One mutating cell of the sweep below: it commits the next number everywhere, or nothing anywhere. One that met a conflict
/// before is eager: it waits for the workspace by an effect, and reads then.
const NEXT: &str = "
    if (input.eager) await z.edit('turn', {content: input.name}, {expect: 'any'});
    const n = (await z.state.get('n')) ?? 0;
    const [one, two, log] = await Promise.all([z.read('one'), z.read('two'), z.read('log')]);
    if (log.split('\\n').filter(line => line.endsWith(' ' + input.name)).length >= input.each) return 'done';
    const next = String(n + 1);
    await z.apply([
        {path: 'one', content: next},
        {path: 'two', content: next},
        {path: 'log', content: log + next + ' ' + input.name + '\\n'},
    ]);
    await z.state.set('n', n + 1);
    return [n, Number(one), Number(two)]";

/// What a reader sees, in either order.
const LOOK: [&str; 2] = [
    "const n = (await z.state.get('n')) ?? 0; return [n, Number(await z.read('one')), Number(await z.read('two'))]",
    "const [one, two] = [Number(await z.read('one')), Number(await z.read('two'))];
     return [(await z.state.get('n')) ?? 0, one, two]",
];

#[test]
#[ignore = "started by the tests below"]
fn child_of_many_cells() {
    let Some(root) = std::env::var_os(ROOT) else { return };
    let kernel = ZeroKernel::open(config(&PathBuf::from(root), &PathBuf::from(variable(STORE)))).unwrap();
    let each: u64 = variable("ZEROSTACK_TEST_EACH").parse().unwrap();
    let (mut committed, mut retried, mut eager) = (0, 0, false);
    loop {
        let input = json!({"each": each, "name": variable("ZEROSTACK_TEST_NAME"), "eager": eager});
        let response = kernel.execute_cell_with(NEXT, crate::hub_support::with_input(input));
        match (response.outcome, response.value) {
            (Outcome::Completed, Some(value)) if value.0 == "done" => break,
            (Outcome::Completed, value) => {
                let value = value.unwrap().0;
                assert!(
                    value[0] == value[1] && value[0] == value[2],
                    "files and state disagree: {value}"
                );
                committed += 1;
                eager = false;
            }
            (_, _) => {
                let error = response.error.unwrap();
                assert!(matches!(error.kind, ErrorKind::Conflict | ErrorKind::Busy), "{error:?}");
                retried += 1;
                eager = true;
            }
        }
    }
    println!("committed {committed} retried {retried}");
}

/// Runs two hosts until each has committed `each` cells; kills either `kills` times meanwhile.
fn two_hosts(each: u64, kills: u32) {
    let total = each * 2;
    let ws = Workspace::new(&[("one", "0"), ("two", "0"), ("log", ""), ("turn", "")]);
    let begun = Instant::now();
    let start = |name: &str| {
        isolated(
            "outbox_hosts::child_of_many_cells",
            &[
                (ROOT, ws.root.path().to_str().unwrap()),
                (STORE, ws.store.path().to_str().unwrap()),
                ("ZEROSTACK_TEST_EACH", &each.to_string()),
                ("ZEROSTACK_TEST_NAME", name),
            ],
        )
    };
    let over = AtomicBool::new(false);
    let (looks, clashes) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut looks, mut clashes, mut last) = (0, 0, 0);
            while !over.load(Ordering::Relaxed) {
                let response = ws.run(LOOK[(looks + clashes) % 2]);
                if response.outcome != Outcome::Completed {
                    let error = response.error.unwrap();
                    assert!(matches!(error.kind, ErrorKind::Conflict), "{error:?}");
                    assert!(error.retryable, "{error:?}");
                    clashes += 1;
                    continue;
                }
                let seen = response.value.unwrap().0;
                let n = seen[0].as_u64().unwrap();
                assert!(
                    seen[0] == seen[1] && seen[0] == seen[2],
                    "files and state disagree: {seen}"
                );
                assert!(n >= last, "{n} after {last}");
                last = n;
                looks += 1;
                std::thread::sleep(Duration::from_millis(5));
            }
            (looks, clashes)
        });
        let mut hosts = [start("a"), start("b")];
        let mut random = u64::from(std::process::id()) | 1;
        for _ in 0..kills {
            // xorshift64: any spread of instants will do.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            std::thread::sleep(Duration::from_millis(400 + random % 900));
            let victim = usize::try_from(random >> 32).unwrap() % 2;
            if hosts[victim].try_wait().unwrap().is_none() {
                hosts[victim].kill().unwrap();
            }
            hosts[victim].wait().unwrap();
            hosts[victim] = start(["a", "b"][victim]);
        }
        let deadline = Duration::from_secs(120) + Duration::from_secs(2) * u32::try_from(total).unwrap();
        for host in &mut hosts {
            while host.try_wait().unwrap().is_none() {
                if begun.elapsed() > deadline {
                    host.kill().unwrap();
                    over.store(true, Ordering::Relaxed);
                    panic!("no end after {deadline:?}: {:?}", ws.kernel.status());
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            let said: Vec<_> = BufReader::new(host.stdout.take().unwrap())
                .lines()
                .map(Result::unwrap)
                .collect();
            assert!(host.wait().unwrap().success(), "{said:#?}");
            let counts = said.iter().find(|line| line.contains("committed ")).unwrap();
            println!("two hosts, {total} cells, {kills} kills: {counts}");
        }
        over.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    println!(
        "reader: {looks} agreeing looks, {clashes} told to retry; {:?} in all",
        begun.elapsed()
    );
    // No cell is lost, none is there twice, every one is whole.
    let log = ws.file("log");
    let numbers: Vec<u64> = log
        .lines()
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(numbers, (1..=total).collect::<Vec<_>>());
    assert_eq!((ws.file("one"), ws.file("two")), (total.to_string(), total.to_string()));
    assert_eq!(ws.value("return z.state.get('n')"), total);
    assert!(looks > 0);
    let of = |name: &str| log.lines().filter(|line| line.ends_with(name)).count() as u64;
    assert_eq!((of(" a"), of(" b")), (each, each));
    // The chain holds each committed cell once, in order.
    let entries = ws.kernel.log(u32::MAX).unwrap();
    let mut committed = 0;
    let mut expected = Some(entries[0].handle.digest);
    for entry in &entries {
        assert_eq!(Some(entry.handle.digest), expected, "the chain of events");
        let event = ws.kernel.event(&entry.handle).unwrap();
        expected = event.previous;
        // An eager cell that found nothing left to do has changed `turn` alone.
        committed += u64::from(event.receipts.iter().any(|receipt| receipt.path.to_string() == "log"))
            * u64::from(event.disposition == Disposition::Committed);
    }
    assert_eq!((committed, expected), (total, None));
    assert_eq!(ws.kernel.verify(None, None, &CancelToken::new()).unwrap().damage, []);
}

/// Cells of the sweep: few by default, a thousand per host in a soak.
fn cells() -> u64 {
    std::env::var("ZEROSTACK_CELLS").map_or(24, |cells| cells.parse().unwrap())
}

#[test]
fn two_hosts_lose_no_update() {
    two_hosts(cells(), 0);
}

#[test]
fn two_hosts_that_are_killed_lose_no_update() {
    let kills = std::env::var("ZEROSTACK_KILLS").map_or(2, |kills| kills.parse().unwrap());
    two_hosts(cells(), kills);
}
