//! Deaths of supervisors and hosts, the lease through them, and what else lives in a host.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use zero_supervisor::lease::{self, Request};
use zero_supervisor::{
    Cleanup, Counts, EndReason, Error, Io, Outcome, Processes, Running, Spec, Stream, Termination, Tree, TreeTier,
    marker,
};

use crate::programs;
use crate::support::{
    Setting, adversary, children, gone_soon, is_root, markers, rounds, run, run_until_up, shell, store, survivors,
    token,
};

crate::scenarios! {
    a_killed_supervisor_is_uncertain_and_its_tree_is_gone;
    a_command_that_attacks_its_supervisor;
    a_command_that_stops_its_supervisor;
    a_killed_host;
    a_killed_host_with_its_supervisor;
    cancel_races_natural_exit;
    a_nested_kernel_is_busy_at_once;
    the_marker_is_there_before_the_program_and_gone_after;
}

fn request(dir: &Path) -> Request<'_> {
    Request {
        dir,
        floor: 0,
        cell: "test",
        deadline: None,
        cancelled: None,
    }
}

/// Drives a command and calls `act` once, when the command has printed something.
fn drive_and(running: Running, mut act: impl FnMut(&str)) -> Outcome {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut once = true;
    let mut tell = |_: Stream, bytes: &[u8]| {
        if std::mem::take(&mut once) {
            act(&String::from_utf8_lossy(bytes));
        }
    };
    running.drive(Io {
        on_output: Some(&mut tell),
        ..Io::new(&mut stdout, &mut stderr)
    })
}

fn a_killed_supervisor_is_uncertain_and_its_tree_is_gone(setting: Setting) {
    for victims in [
        &["supervisor"][..],
        &["guard"],
        &["guard", "supervisor"],
        &["supervisor", "guard"],
    ] {
        for _ in 0..rounds() {
            let (token, store) = (token(), store());
            let mut spec = adversary(setting, &["stubborn", &token]);
            spec.marker_dir = Some(store.path().into());
            spec.grace = Duration::from_millis(50);
            let processes = Processes::new(programs::supervisor());
            let running = processes.spawn(spec).expect("spawn");
            let (supervisor, guard) = (
                running.supervisor().expect("supervisor"),
                running.guard().expect("guard"),
            );
            let outcome = drive_and(running, |_| {
                for victim in victims {
                    let who = if *victim == "guard" { guard } else { supervisor };
                    assert!(who.signal(Signal::KILL), "{victim}");
                }
            });
            let Cleanup::Uncertain { empty: true, .. } = &outcome.cleanup else {
                panic!("{victims:?}: {outcome:?}")
            };
            assert_eq!(survivors(&token), [0_i32; 0], "{victims:?}");
            assert!(
                marker::blocking(store.path()).expect("markers").is_empty(),
                "{victims:?}"
            );
            assert_eq!(children(), 0);
            let counts = processes.wait_empty(Instant::now() + Duration::from_secs(10));
            assert_eq!(
                counts,
                Counts {
                    started: 1,
                    reaped: 1,
                    unproven: 0,
                    live: 0
                },
                "{victims:?}"
            );
        }
    }
}

fn a_command_that_attacks_its_supervisor(setting: Setting) {
    for victim in ["supervisor", "guard", "both"] {
        for _ in 0..rounds() {
            let (token, store) = (token(), store());
            let mut spec = adversary(setting, &["attack", &token, "9", victim]);
            spec.marker_dir = Some(store.path().into());
            // Ended once it has tried.
            let ran = run_until_up(spec);
            if setting.tier == TreeTier::PidNamespace {
                // It cannot see them, and its namespace's first process is immune.
                assert!(
                    ran.outcome.cleanup.is_clean() && ran.outcome.reason == EndReason::Timeout,
                    "{victim}: {ran:?}"
                );
            } else {
                assert!(
                    matches!(ran.outcome.cleanup, Cleanup::Uncertain { empty: true, .. }),
                    "{victim}: {ran:?}"
                );
            }
            assert_eq!(survivors(&token), [0_i32; 0], "{victim}");
        }
    }
}

fn a_command_that_stops_its_supervisor(setting: Setting) {
    for _ in 0..rounds() {
        let token = token();
        let mut spec = adversary(setting, &["attack", &token, "19", "both"]);
        spec.timeout = Some(Duration::from_millis(200));
        spec.grace = Duration::from_millis(50);
        spec.cleanup = Duration::from_millis(500);
        let ran = run(spec);
        assert_eq!(survivors(&token), [0_i32; 0]);
        assert!(
            ran.outcome.cleanup.is_clean() && ran.outcome.reason == EndReason::Timeout,
            "{ran:?}"
        );
    }
}

/// A helper process; killed and reaped with the test that started it.
struct Helper(Child);

impl Helper {
    fn kill(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("reaped");
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // Already dead when the test went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts this test program again as a host that holds the lease and drives a stubborn tree; waits until it runs.
fn host(setting: Setting, store: &Path, token: &str) -> (Helper, [i32; 2]) {
    let child = Command::new(std::env::current_exe().expect("own program"))
        .args(["hosts::helper_host", "--exact", "--ignored", "--nocapture"])
        .env("ZS_STORE", store)
        .env("ZS_TOKEN", token)
        .env("ZS_TIER", format!("{:?}", setting.tier))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("host");
    let mut child = Helper(child);
    let mut lines = BufReader::new(child.0.stdout.take().expect("piped")).lines();
    loop {
        let line = lines.next().expect("the host says that it is ready").expect("text");
        if let Some((_, pids)) = line.split_once("ready ") {
            let (guard, supervisor) = pids.split_once(' ').expect("two numbers");
            return (
                child,
                [guard.parse().expect("guard"), supervisor.parse().expect("supervisor")],
            );
        }
    }
}

/// Not a test: the host of the tests above.
#[test]
#[ignore = "helper process of other tests"]
fn helper_host() {
    let (Ok(store), Ok(token), Ok(tier)) = (
        std::env::var("ZS_STORE"),
        std::env::var("ZS_TOKEN"),
        std::env::var("ZS_TIER"),
    ) else {
        return;
    };
    let tier = match tier.as_str() {
        "Cgroup" => TreeTier::Cgroup,
        "PidNamespace" => TreeTier::PidNamespace,
        _ => TreeTier::Rlimits,
    };
    let lease = lease::acquire(&request(Path::new(&store))).expect("lease");
    let mut spec = adversary(Setting { tier, root: is_root() }, &["stubborn", &token]);
    spec.marker_dir = Some(store.into());
    spec.lease = Some(Arc::new(lease));
    spec.grace = Duration::from_millis(300);
    let running = Processes::new(programs::supervisor()).spawn(spec).expect("spawn");
    let (guard, supervisor) = (
        running.guard().expect("guard").pid,
        running.supervisor().expect("supervisor").pid,
    );
    drive_and(running, |_| println!("ready {guard} {supervisor}"));
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).expect("a number"), Signal::KILL).expect("killed");
}

fn a_killed_host(setting: Setting) {
    for _ in 0..rounds() {
        let (token, store) = (token(), store());
        let (mut host, _) = host(setting, store.path(), &token);
        host.kill();
        // The grandchild ignores TERM, so for the length of the grace the tree lives, and the lease with it.
        let mut held = 0;
        let until = Instant::now() + Duration::from_secs(20);
        let granted = loop {
            match lease::acquire(&request(store.path())) {
                Ok(lease) => break lease,
                Err(Error::Busy(busy)) => {
                    let holder = busy.holder.expect("named");
                    assert!(!holder.alive && holder.cell == "test", "{holder:?}");
                    held += 1;
                }
                Err(other) => panic!("{other}"),
            }
            assert!(Instant::now() < until, "the lease was never released");
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(survivors(&token), [0_i32; 0], "the lease outlives the tree");
        assert!(held > 0, "the lease was held after the host's death");
        assert_eq!(granted.epoch(), 2);
        assert_eq!(markers(store.path()), Vec::<std::path::PathBuf>::new());
    }
}

fn a_killed_host_with_its_supervisor(setting: Setting) {
    for victims in [&[0_usize][..], &[1], &[0, 1], &[1, 0]] {
        for _ in 0..rounds() {
            let (token, store) = (token(), store());
            let (mut host, owners) = host(setting, store.path(), &token);
            host.0.kill().expect("killed");
            for victim in victims {
                kill(owners[*victim]);
            }
            // One owner left ends the tree by itself; without one the next to want the workspace does.
            let patient = Request {
                deadline: Some(Instant::now() + Duration::from_secs(20)),
                ..request(store.path())
            };
            let lease = lease::acquire(&patient).expect("granted in time");
            assert_eq!(survivors(&token), [0_i32; 0], "{victims:?}");
            assert_eq!(lease.epoch(), 2);
        }
    }
}

fn cancel_races_natural_exit(setting: Setting) {
    let processes = Processes::new(programs::supervisor());
    let many = 20 * rounds();
    let mut natural = 0;
    for round in 0..many {
        let mut spec = shell(setting, "exit 5");
        spec.grace = Duration::from_millis(50);
        let running = processes.spawn(spec).expect("spawn");
        let canceller = running.canceller();
        let outcome = std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_micros(u64::from(round % 20) * 150));
                canceller.cancel(EndReason::Cancelled);
                canceller.cancel(EndReason::Timeout);
            });
            running.drive(Io::new(&mut io::sink(), &mut io::sink()))
        });
        assert!(outcome.cleanup.is_clean(), "{outcome:?}");
        match (outcome.reason, &outcome.termination) {
            (EndReason::Natural, Termination::Exited { code: 5 }) => natural += 1,
            (EndReason::Cancelled, Termination::Exited { code: 5 } | Termination::Signalled { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    let counts = processes.counts();
    assert_eq!(
        (counts.started, counts.reaped),
        (u64::from(many), u64::from(many)),
        "each settled once"
    );
    eprintln!("{natural} of {many} ended by themselves");
}

fn a_nested_kernel_is_busy_at_once(setting: Setting) {
    let store = store();
    let lease = Arc::new(lease::acquire(&request(store.path())).expect("lease"));
    let nested = |clear: bool| {
        let exe = std::env::current_exe().expect("own program");
        let mut argv: Vec<std::ffi::OsString> = Vec::new();
        if clear {
            argv.extend(["env".into(), "-i".into()]);
        } else {
            argv.push("env".into());
        }
        let mut variable = std::ffi::OsString::from("ZS_STORE=");
        variable.push(store.path());
        argv.push(variable);
        argv.push(exe.into());
        argv.extend(["hosts::helper_nested", "--exact", "--ignored", "--nocapture"].map(Into::into));
        let mut spec = Spec::new(argv, "/");
        spec.tree = Tree::required(setting.tier);
        spec.marker_dir = Some(store.path().into());
        spec.lease = Some(Arc::clone(&lease));
        let ran = run(spec);
        String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr)
    };
    let text = nested(false);
    assert!(text.contains("nested true"), "{text}");
    if setting.tier != TreeTier::PidNamespace {
        // Its ancestors give it away.
        let text = nested(true);
        assert!(text.contains("nested true"), "{text}");
    }
    // Another store is not in the way.
    assert!(lease::acquire(&request(self::store().path())).is_ok());
}

/// Not a test: the nested kernel of the test above, which would wait for an hour.
#[test]
#[ignore = "helper process of other tests"]
fn helper_nested() {
    let Ok(store) = std::env::var("ZS_STORE") else { return };
    let patient = Request {
        deadline: Some(Instant::now() + Duration::from_secs(3600)),
        ..request(Path::new(&store))
    };
    match lease::acquire(&patient) {
        Err(Error::Busy(busy)) => println!("nested {}", busy.nested),
        other => println!("{other:?}"),
    }
}

fn the_marker_is_there_before_the_program_and_gone_after(setting: Setting) {
    let store = store();
    // The program itself looks.
    let mut spec = shell(setting, &format!("ls {} | grep -c '[.]run$'", store.path().display()));
    spec.marker_dir = Some(store.path().into());
    let ran = run(spec);
    assert_eq!(ran.stdout, b"1\n", "{ran:?}");
    assert_eq!(markers(store.path()), Vec::<std::path::PathBuf>::new());
    // Where it cannot be written, nothing runs.
    let mut spec = shell(setting, "echo ran");
    spec.marker_dir = Some(store.path().join("absent"));
    match Processes::new(programs::supervisor()).spawn(spec) {
        Err(Error::Supervisor(why)) => assert!(why.contains("marker"), "{why}"),
        other => panic!("{other:?}"),
    }
}

/// Also without a marker that names them.
#[test]
fn a_guard_leaves_no_cgroup() {
    let mut spec = Spec::shell("echo up; exec sleep 1000", "/");
    spec.tree = Tree::required(TreeTier::Cgroup);
    let running = match Processes::new(programs::supervisor()).spawn(spec) {
        Err(Error::Unsupported(why)) => return eprintln!("SKIPPED: {why}"),
        other => other.expect("spawn"),
    };
    let supervisor = running.supervisor().expect("supervisor");
    let name = format!("zero-{}-{}", supervisor.pid, supervisor.start);
    let cgroup =
        std::fs::read_to_string(format!("/proc/{}/cgroup", running.root().expect("root").pid)).expect("cgroup");
    assert!(cgroup.contains(&name), "{cgroup}");
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    let dirs: Vec<std::path::PathBuf> = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(1).filter(|_| line.contains(" cgroup")))
        .flat_map(|mount| {
            cgroup
                .lines()
                .filter_map(move |line| Some(Path::new(mount).join(line.splitn(3, ':').nth(2)?.strip_prefix('/')?)))
        })
        .filter(|dir| dir.ends_with(&name) && dir.exists())
        .collect();
    assert!(!dirs.is_empty(), "{mounts}");
    drive_and(running, |_| assert!(supervisor.signal(Signal::KILL)));
    for dir in dirs {
        assert!(!dir.exists(), "{}", dir.display());
    }
}

#[test]
fn a_spawning_thread_may_end() {
    let processes = Processes::new(programs::supervisor());
    let running = std::thread::spawn({
        let processes = processes.clone();
        move || {
            processes
                .spawn(Spec::shell("sleep 0.2; echo alive", "/"))
                .expect("spawn")
        }
    })
    .join()
    .expect("thread");
    let mut stdout = Vec::new();
    let outcome = running.drive(Io::new(&mut stdout, &mut io::sink()));
    assert_eq!(stdout, b"alive\n");
    assert_eq!((outcome.reason, outcome.cleanup), (EndReason::Natural, Cleanup::Clean));
}

#[test]
fn an_unrelated_child_of_the_host_keeps_its_status() {
    let mut other = Command::new("sh").args(["-c", "exit 42"]).spawn().expect("spawn");
    let processes = Processes::new(programs::supervisor());
    for _ in 0..5 {
        let running = processes.spawn(Spec::new(["true"], "/")).expect("spawn");
        assert!(
            running
                .drive(Io::new(&mut io::sink(), &mut io::sink()))
                .cleanup
                .is_clean()
        );
    }
    assert_eq!(other.wait().expect("still there").code(), Some(42));
}

/// The kernel reaps such a host's children itself, so nobody can learn their status; the verdict comes over the socket.
#[test]
fn a_host_that_ignores_sigchld_gets_its_verdicts() {
    let output = Command::new("sh")
        .args([
            "-c",
            "trap '' CHLD; exec \"$0\" hosts::helper_ignores_sigchld --exact --ignored --nocapture",
        ])
        .arg(std::env::current_exe().expect("own program"))
        .env("ZS_HELPER", "1")
        .output()
        .expect("helper");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("all clean"), "{text}");
}

/// Not a test: the host of the test above.
#[test]
#[ignore = "helper process of other tests"]
fn helper_ignores_sigchld() {
    if std::env::var_os("ZS_HELPER").is_none() {
        return;
    }
    let processes = Processes::new(programs::supervisor());
    for _ in 0..20 {
        let outcome = processes
            .spawn(Spec::shell("exit 3", "/"))
            .expect("spawn")
            .drive(Io::new(&mut io::sink(), &mut io::sink()));
        assert_eq!(
            (outcome.termination, outcome.cleanup),
            (Termination::Exited { code: 3 }, Cleanup::Clean)
        );
    }
    assert_eq!(processes.counts().reaped, 20);
    println!("all clean");
}

#[test]
fn a_child_the_host_starts_meanwhile_does_not_keep_the_lease() {
    let store = store();
    let lease = lease::acquire(&request(store.path())).expect("lease");
    let mut other = Command::new("sleep").arg("1000").spawn().expect("spawn");
    drop(lease);
    assert_eq!(lease::acquire(&request(store.path())).expect("free").epoch(), 2);
    other.kill().expect("kill");
    other.wait().expect("wait");
}

#[test]
fn the_lease_is_held_until_the_last_command_is_gone() {
    let store = store();
    let lease = Arc::new(lease::acquire(&request(store.path())).expect("lease"));
    let mut spec = Spec::shell("echo up; exec sleep 1000", "/");
    spec.lease = Some(lease);
    let processes = Processes::new(programs::supervisor());
    let running = processes.spawn(spec).expect("spawn");
    assert!(matches!(lease::acquire(&request(store.path())), Err(Error::Busy(_))));
    // Dropped without being driven: the supervisor takes it for the end of the host.
    drop(running);
    let counts = processes.wait_empty(Instant::now() + Duration::from_secs(10));
    assert_eq!(
        counts,
        Counts {
            started: 1,
            reaped: 1,
            unproven: 0,
            live: 0
        }
    );
    assert_eq!(lease::acquire(&request(store.path())).expect("free").epoch(), 2);
    assert_eq!(children(), 0);
}

#[test]
fn a_closed_owner_refuses_and_ends_all_in_parallel() {
    let token = token();
    let processes = Processes::new(programs::supervisor());
    std::thread::scope(|scope| {
        let drivers: Vec<_> = (0..4)
            .map(|_| {
                let running = processes
                    .spawn(Spec::shell(format!("exec sleep 1000.{token}"), "/"))
                    .expect("spawn");
                scope.spawn(move || running.drive(Io::new(&mut io::sink(), &mut io::sink())))
            })
            .collect();
        processes.close();
        assert!(matches!(processes.spawn(Spec::new(["true"], "/")), Err(Error::Closed)));
        for driver in drivers {
            let outcome = driver.join().expect("thread");
            assert_eq!(
                (outcome.reason, outcome.cleanup),
                (EndReason::Cancelled, Cleanup::Clean)
            );
        }
    });
    let counts = processes.wait_empty(Instant::now() + Duration::from_secs(5));
    assert_eq!(
        counts,
        Counts {
            started: 4,
            reaped: 4,
            unproven: 0,
            live: 0
        }
    );
    assert_eq!(survivors(&token), [0_i32; 0]);
}

#[test]
fn a_supervisor_that_was_got_ready_and_not_used_is_gone() {
    let processes = Processes::new(programs::supervisor());
    for _ in 0..rounds() {
        let ready = processes.ready().expect("started");
        assert_eq!((children(), processes.counts().live), (1, 1));
        drop(ready);
        assert_eq!((children(), processes.counts()), (0, Counts::default()));
    }
    // Neither when what it is told is refused.
    let ready = processes.ready().expect("started");
    assert!(matches!(
        ready.spawn(Spec::new(["true"], "relative")),
        Err(Error::Invalid { field: "cwd", .. })
    ));
    assert_eq!((children(), processes.counts()), (0, Counts::default()));
}

#[test]
fn a_supervisor_that_was_got_ready_runs_one_command() {
    let processes = Processes::new(programs::supervisor());
    let ready = processes.ready().expect("started");
    let running = ready.spawn(Spec::new(["echo", "hi"], "/")).expect("spawn");
    let mut stdout = Vec::new();
    let outcome = running.drive(Io::new(&mut stdout, &mut io::sink()));
    assert_eq!((&stdout[..], outcome.cleanup), (&b"hi\n"[..], Cleanup::Clean));
    let counts = processes.counts();
    assert_eq!((counts.started, counts.reaped, counts.live), (1, 1, 0));
    assert_eq!(children(), 0);
}

/// The command of a call that was under way when its owner closed is refused, not started and ended.
#[test]
fn a_ready_supervisor_of_a_closed_owner_starts_nothing() {
    let dir = store();
    let mark = dir.path().join("ran");
    let processes = Processes::new(programs::supervisor());
    let ready = processes.ready().expect("started");
    processes.close();
    let spec = Spec::shell(format!(": > {}", mark.display()), "/");
    assert!(matches!(ready.spawn(spec), Err(Error::Closed)));
    let counts = processes.wait_empty(Instant::now() + Duration::from_secs(5));
    assert_eq!((counts, children(), mark.exists()), (Counts::default(), 0, false));
}

#[test]
fn the_polled_reason_ends_a_command() {
    let processes = Processes::new(programs::supervisor());
    let running = processes.spawn(Spec::new(["sleep", "1000"], "/")).expect("spawn");
    let begun = Instant::now();
    let mut poll = || (begun.elapsed() > Duration::from_millis(50)).then_some(EndReason::Timeout);
    let outcome = running.drive(Io {
        poll: Some(&mut poll),
        ..Io::new(&mut io::sink(), &mut io::sink())
    });
    assert_eq!((outcome.reason, outcome.cleanup), (EndReason::Timeout, Cleanup::Clean));
}

/// A tree that cannot be killed in time: its processes are frozen by another cgroup. As root, with the v1 freezer.
#[test]
fn past_the_cleanup_deadline_the_verdict_is_uncertain_and_the_lease_stays() {
    let freezer = Path::new("/sys/fs/cgroup/freezer").join(format!("zero-test-{}", std::process::id()));
    if std::fs::create_dir(&freezer).is_err() || !freezer.join("freezer.state").exists() {
        eprintln!("SKIPPED: needs root and the v1 freezer");
        return;
    }
    let (token, store) = (token(), store());
    let mut spec = Spec::shell(format!("echo up; exec sleep 1000.{token}"), "/");
    spec.grace = Duration::from_millis(20);
    spec.cleanup = Duration::from_millis(100);
    spec.marker_dir = Some(store.path().into());
    spec.lease = Some(Arc::new(lease::acquire(&request(store.path())).expect("lease")));
    let processes = Processes::new(programs::supervisor());
    let running = processes.spawn(spec).expect("spawn");
    let (root, canceller) = (running.root().expect("root"), running.canceller());
    let outcome = drive_and(running, |_| {
        std::fs::write(freezer.join("cgroup.procs"), root.pid.to_string()).expect("moved");
        std::fs::write(freezer.join("freezer.state"), "FROZEN").expect("frozen");
        canceller.cancel(EndReason::Cancelled);
    });
    let busy = lease::acquire(&request(store.path()));
    let counts = processes.counts();
    let marked = markers(store.path()).len();
    std::fs::write(freezer.join("freezer.state"), "THAWED").expect("thawed");
    let after = processes.wait_empty(Instant::now() + Duration::from_secs(10));
    let left = gone_soon(&token, Duration::from_secs(5));
    let removed = std::fs::remove_dir(&freezer);

    assert!(
        matches!(outcome.cleanup, Cleanup::Uncertain { empty: false, .. }),
        "{outcome:?}"
    );
    assert_eq!(outcome.reason, EndReason::Cancelled);
    assert!(matches!(busy, Err(Error::Busy(_))), "{busy:?}");
    assert_eq!(
        counts,
        Counts {
            started: 1,
            reaped: 0,
            unproven: 1,
            live: 0
        }
    );
    assert_eq!(marked, 1);
    assert_eq!(
        after,
        Counts {
            started: 1,
            reaped: 1,
            unproven: 0,
            live: 0
        }
    );
    assert_eq!(left, [0_i32; 0]);
    removed.expect("the cgroup is empty");
    assert_eq!(lease::acquire(&request(store.path())).expect("free at last").epoch(), 2);
}
